'use strict';
// The page: its text about the runs, and the choice of charts (charts.js draws them).

addEventListener('error', (event) => {
  const place = document.getElementById('error');
  place.textContent = `This page could not be drawn: ${event.message}`;
  place.hidden = false;
});

const runs = JSON.parse(document.getElementById('runs').textContent);
const single = runs.length === 1;

// Metrics and their names on the page; files call the loss of an evaluation logloss.
const METRICS = {loss: 'Loss (logloss)', auc: 'AUC', ne: 'Normalised entropy', calibration: 'Calibration (mean p / mean label)'};
const TITLES = {...METRICS, gauc: 'AUC within groups'};
const COUNTS = ['examples', 'groups'];
const metricName = (name) => name.replace(/(^|\.)logloss$/, '$1loss');
const lastPart = (name) => name.slice(name.lastIndexOf('.') + 1);

// Each of several labels has its metrics: labels.<label>.<metric>.
function titleOf(name) {
  const [, label, metric] = /^labels\.(.+)\.([^.]+)$/.exec(name) ?? [];
  return label === undefined ? TITLES[name] ?? name : `${TITLES[metric] ?? metric} of ${label}`;
}

// The numbers in an object and in the objects in it, as [path, number].
function numbersIn(object, path = '') {
  return Object.entries(object ?? {}).flatMap(([name, value]) => {
    if (isNumber(value)) return [[path + name, value]];
    const isObject = value !== null && typeof value === 'object' && !Array.isArray(value);
    return isObject ? numbersIn(value, `${path}${name}.`) : [];
  });
}

// With several labels only those of each: the others are the first one's.
function metricsOf(object) {
  const hasLabels = object?.labels !== undefined;
  return new Map(numbersIn(object)
    .filter(([name]) => !COUNTS.includes(lastPart(name)) && (!hasLabels || name.startsWith('labels.')))
    .map(([name, value]) => [metricName(name), value]));
}

// The evaluation with the best value of the metric that early stopping goes by: {metric, step, value}.
function bestOf(run) {
  const metric = new Map(run.config).get('train.early_stopping.metric') ?? 'auc';
  const sign = ['auc', 'gauc'].includes(metric) ? 1 : -1;
  let best = null;
  for (const {step, eval: numbers} of run.evaluations) {
    const value = numbers?.[metric];
    if (isNumber(value) && (best === null || sign * (value - best.value) > 0)) best = {metric, step, value};
  }
  return run.evaluations.length > 1 ? best : null;
}

// ---------------------------------------------------------------------------------------- result

const last = (list) => list[list.length - 1];
const startOf = (run) => last(run.starts)?.start ?? {};

function stateOf({summary, reports}) {
  const step = last(reports)?.step ?? 0;
  if (!summary || step > summary.step) return 'in progress, or ended by an error';
  return summary.finished ? 'finished' : `stopped at step ${summary.step}`;
}

const whole = (value) => (isNumber(value) ? value.toLocaleString('en') : '');
const sized = (value, kind) => (isNumber(value) ? format(value, kind) : '');

// "1,200, most: column 'price': expected a number (1,000)"
function badRows(summary) {
  const reasons = Object.entries(summary?.bad_row_reasons ?? {}).sort(([, a], [, b]) => b - a);
  const most = reasons.length > 0 ? `, most: ${reasons[0][0]} (${whole(reasons[0][1])})` : '';
  return whole(summary?.bad_rows) + most;
}

// The latest numbers, with or without a summary: [name, text]; an entry without text has no row.
function resultRows(run) {
  const {summary, starts} = run;
  const report = last(run.reports) ?? {};
  const start = startOf(run);
  const isWhole = summary && starts.length < 2;  // else the summary has the last process's time
  const seconds = isWhole ? summary.seconds : Math.max(0, ...run.reports.map(({time}) => time));
  const best = bestOf(run);
  const rows = [
    ['State', stateOf(run)],
    ['Started', starts[0]?.start?.time],
    ['Resumed', starts.slice(1).map(({step}) => `at step ${step}`).join(', ')],
    ['satrap', start.version ?? summary?.version],
    ['Machine', start.machine],
    ['Ranks, shards', start.ranks > 1 || start.shards > 0 ? `${start.ranks}, ${start.shards}` : ''],
    ['Mode', summary && `${summary.mode}${summary.deterministic ? ', deterministic' : ''}`],
    ['Seed', summary?.seed],
    ['Steps', whole(report.step)],
    ['Examples', whole(report.examples)],
    ['Training time', seconds > 0 ? duration(seconds) : ''],
    ['Examples/s', whole(Math.round(summary?.examples_per_second))],
    ['Reports', run.reports.length < run.num_reports
      ? `${run.reports.length} of ${run.num_reports} are drawn` : ''],
  ];
  const train = metricsOf(report.train), evaluation = metricsOf(last(run.evaluations)?.eval);
  for (const name of new Set([...Object.keys(METRICS), ...train.keys(), ...evaluation.keys()])) {
    const title = titleOf(name);
    rows.push([`${title}, last training window`, sized(train.get(name), 'plain')]);
    rows.push([`${title}, evaluation`, sized(evaluation.get(name), 'plain')]);
  }
  if (best) rows.push(['Best evaluation', `${best.metric} ${format(best.value)} at step ${whole(best.step)}`]);
  const {mean, max, bound} = summary?.staleness ?? {};
  rows.push(
    ['Rows', whole(report.rows)],
    ['Tables', sized(report.table_bytes, 'bytes')],
    ['Cache', sized(report.cache?.bytes, 'bytes')],
    ['Resident memory', sized(report.resident_bytes, 'bytes')],
    ['Staleness', isNumber(mean) ? `mean ${format(mean)}, max ${max} steps; bound ${bound ?? 'none'}` : ''],
    ['Bad rows', badRows(summary)],
    ['Non-finite steps', whole(summary?.nonfinite_steps)]);
  return rows.filter(([, value]) => value !== undefined && value !== null && value !== '');
}

// One column per run; `columns` are Maps from a row's name to its text.
function table(columns) {
  const names = new Set(columns.flatMap((column) => [...column.keys()]));
  const head = single ? [] : [html('thead', {}, html('tr', {}, html('th'),
    ...runs.map(({name}, r) => html('th', {scope: 'col'}, curveSample({colour: runColour(r)}), ' ', name))))];
  const body = [...names].map((name) => html('tr', {}, html('th', {scope: 'row'}, name),
    ...columns.map((column) => html('td', {}, String(column.get(name) ?? '–')))));
  return html('table', {class: single ? 'single' : ''}, ...head, html('tbody', {}, ...body));
}

function showResult() {
  document.title = `${runs.map(({name}) => name).join(', ')} – satrap`;
  const title = document.getElementById('title');
  title.textContent = single ? runs[0].path : `Comparison of ${runs.length} runs`;
  const found = runs.flatMap(({name, findings}) => findings.map((text) => (single ? text : `${name}: ${text}`)));
  if (found.length > 0) {
    document.getElementById('result').append(
      html('ul', {class: 'findings'}, ...found.map((text) => html('li', {}, text))));
  }
  document.getElementById('result').append(table(runs.map((run) => new Map(resultRows(run)))));
}

function showDifferences() {
  if (single) return;
  const configs = runs.map(({config}) => new Map(config));
  const keys = [...new Set(configs.flatMap((config) => [...config.keys()]))];
  const differing = keys.filter((key) =>
    !['run_dir', 'folder'].includes(key) && new Set(configs.map((config) => config.get(key))).size > 1);
  const place = document.getElementById('differences');
  place.append(html('h2', {}, 'Differences of the configurations'));
  place.append(differing.length === 0 ? html('p', {}, 'None, except run_dir.')
    : table(configs.map((config) => new Map(differing.map((key) => [key, config.get(key)])))));
}

function showDetails() {
  const show = (title, text) => document.getElementById('details').append(
    html('details', {}, html('summary', {}, title), html('pre', {}, text)));
  for (const {name, config_text: config, summary} of runs) {
    const whose = single ? '' : ` of ${name}`;
    if (config) show(`Configuration${whose}, every default written out`, config);
    if (summary) show(`summary.json${whose}`, JSON.stringify(summary, null, 2));
  }
}

// ---------------------------------------------------------------------------------------- charts

const runColour = (run) => `--c${run % 7}`;

const AXES = {step: {kind: 'count', name: 'step'}, time: {kind: 'seconds', name: 'training time'}};
let axis = 'step';  // of AXES: what the curves are drawn over
const at = (line) => line[axis];

const entry = (sample, name) => html('span', {}, curveSample(sample), name);
const runEntries = () => (single ? [] : runs.map(({name}, r) => entry({colour: runColour(r)}, name)));

// Where on the axis the best evaluation is; undefined: there is none.
function bestPlace(run) {
  const best = bestOf(run);
  return best === null ? undefined : at(run.evaluations.find(({step}) => step === best.step));
}

// Curves of one or two kinds of a thing, such as training and evaluation. kinds: [{name, dotted,
// pointsOf(run)}].
// For one run the kinds differ in colour and line; for several, runs differ in colour and kinds in line.
// Null if there is nothing to show.
function curves(title, yKind, fromZero, kinds) {
  const hasValues = ({points}) => points.some(([, y]) => isNumber(y));
  const series = runs.flatMap((run, r) => kinds.map((kind, k) => ({
    kind, name: [single ? '' : run.name, kind.name].filter(Boolean).join(' '),
    colour: runColour(single ? k : r), dashed: k > 0, dotted: kind.dotted,
    best: kind.dotted ? bestPlace(run) : undefined,
    points: kind.pointsOf(run)}))).filter(hasValues);
  if (series.length === 0) return null;
  const legend = kinds.flatMap((kind, k) => (kind.name && series.some((one) => one.kind === kind)
    ? [entry({colour: single ? runColour(k) : '--faint', dashed: k > 0, dotted: kind.dotted}, kind.name)] : []));
  if (series.some(({best}) => best !== undefined)) {
    legend.push(html('span', {}, bestSample(single ? runColour(1) : '--faint'), 'best evaluation'));
  }
  return lineChart({title, series, legend: [...runEntries(), ...legend], x: AXES[axis], yKind, fromZero,
    marks: single ? runs[0].starts.slice(1).map(at) : []});
}

// The same for numbers in the reports. kinds: [[name, numberOf(line)], ...].
const reported = (title, yKind, ...kinds) => curves(title, yKind, true, kinds.map(([name, numberOf]) =>
  ({name, pointsOf: (run) => run.reports.map((line) => [at(line), numberOf(line)])})));

// A chart for every metric, known here or not: loss, AUC and NE first.
function metricCharts() {
  const kinds = [
    {name: 'training, window', linesOf: (run) => run.reports, metrics: (line) => metricsOf(line.train)},
    {name: 'evaluation', dotted: true, linesOf: (run) => run.evaluations, metrics: (line) => metricsOf(line.eval)}];
  const names = new Set(Object.keys(METRICS));
  for (const {linesOf, metrics} of kinds) {
    runs.flatMap(linesOf).forEach((line) => metrics(line).forEach((_, name) => names.add(name)));
  }
  return [...names].map((metric) => curves(titleOf(metric), 'plain', false,
    kinds.map(({name, dotted, linesOf, metrics}) => ({name, dotted,
      pointsOf: (run) => linesOf(run).map((line) => [at(line), metrics(line).get(metric)])}))));
}

// Time of the stages between two reports, per step. The stages run in several threads, so that the
// sum is work, not elapsed time.
function stageChart(run) {
  const names = Object.keys(last(run.reports)?.stage_seconds ?? {});
  let before = {};
  const intervals = [];
  for (const report of run.reports) {
    if (before.process !== report.process) {  // the clocks of another process
      before = run.starts.find(({process}) => process === report.process) ?? {step: 0, time: 0};
    }
    const steps = report.step - before.step;
    const spent = (name) => (report.stage_seconds?.[name] ?? 0) - (before.stage_seconds?.[name] ?? 0);
    const values = names.map((name) => 1000 * spent(name) / steps);
    if (steps > 0) intervals.push({from: at(before), to: at(report), values});
    before = report;
  }
  const used = names.map((_, i) => i).filter((i) => intervals.some(({values}) => values[i] > 0));
  if (used.length === 0) return null;
  return stackedChart({
    title: `Work of the stages per step${single ? '' : `, ${run.name}`}`,
    layers: used.map((i) => ({name: names[i], colour: `--s${i % 10}`})),
    intervals: intervals.map((one) => ({...one, values: used.map((i) => one.values[i])})),
    x: AXES[axis], yKind: 'milliseconds'});
}

function stalenessHistogram() {
  const groups = runs.map((run, r) => {
    const counts = run.summary?.staleness?.histogram ?? [];
    const total = counts.reduce((sum, count) => sum + count, 0);
    return {colour: runColour(r), values: total > 0 ? counts.map((count) => count / total) : []};
  });
  if (groups.every(({values}) => values.length === 0)) return null;
  return histogramChart({
    title: 'Staleness of lookups, share of all', groups, legend: runEntries(), xName: 'steps'});
}

function showCharts() {
  const charts = [
    ...metricCharts(),
    reported('Throughput, examples/s', 'count', ['', (line) => line.examples_per_second]),
    reported('Dense stage waiting for its input, share of time', 'percent', ['', (line) => line.wait_share]),
    ...runs.map(stageChart),
    reported('GPU at work, share of time', 'percent', ['', (line) => line.device_share]),
    reported('GPU time so far, s', 'plain', ['lookups', (line) => line.device_seconds?.lookup],
      ['network', (line) => line.device_seconds?.network], ['updates', (line) => line.device_seconds?.update],
      ['exchanges between GPUs', (line) => line.device_seconds?.exchange]),
    reported('Staleness of lookups so far, steps', 'plain',
      ['mean', (line) => line.staleness?.mean], ['max', (line) => line.staleness?.max],
      ['bound', (line) => line.staleness?.bound]),
    stalenessHistogram(),
    reported('Memory', 'bytes',
      ['process', (line) => line.resident_bytes], ['tables', (line) => line.table_bytes]),
    reported('Rows in the tables', 'count', ['', (line) => line.rows]),
    reported('Needed rows found in the cache so far, share', 'percent', ['', (line) => line.cache?.hit_rate]),
    reported('Rows between cache and tables so far', 'bytes',
      ['fetched', (line) => line.cache?.bytes_fetched], ['written back', (line) => line.cache?.bytes_written]),
  ].filter((chart) => chart !== null);
  document.getElementById('charts').replaceChildren(
    ...(charts.length > 0 ? charts : [html('p', {}, 'Nothing has been reported yet.')]));
}

showResult();
showDifferences();
showCharts();
showDetails();
for (const choice of document.querySelectorAll('input[name=axis]')) {
  choice.addEventListener('change', () => {
    axis = choice.value;
    showCharts();
  });
}

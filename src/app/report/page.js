'use strict';
// The page: its text about the runs (what stands first is in headline.js), and the choice of charts (charts.js).

addEventListener('error', (event) => {
  const place = document.getElementById('error');
  place.textContent = `This page could not be drawn: ${event.message}`;
  place.hidden = false;
});

const {runs, groups} = JSON.parse(document.getElementById('runs').textContent);
const single = runs.length === 1;

// Metrics and their names on the page; files call the loss of an evaluation logloss.
const METRICS = {loss: 'Loss (logloss)', auc: 'AUC', ne: 'Normalised entropy', calibration: 'Calibration (mean p / mean label)'};
const TITLES = {...METRICS, gauc: 'AUC within groups', ap: 'Average precision', brier: 'Brier score', rmse: 'RMSE',
  mae: 'MAE', r2: 'R²', accuracy: 'Accuracy'};
const COUNTS = ['examples', 'weight', 'groups', 'positive_groups'];
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

// With several labels only those of each: the others are the first one's. The loss of a number is the square of its RMSE.
function metricsOf(object) {
  const hasLabels = object?.labels !== undefined;
  const numbers = numbersIn(object), names = new Set(numbers.map(([name]) => name));
  const isSquare = (name) => lastPart(name) === 'loss' && names.has(name.replace(/loss$/, 'rmse'));
  return new Map(numbers
    .filter(([name]) => !COUNTS.includes(lastPart(name)) && !isSquare(name) && (!hasLabels || name.startsWith('labels.')))
    .map(([name, value]) => [metricName(name), value]));
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
  const rows = [
    ['Run directory', run.path],
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
    rows.push([`${title}, last evaluation`, sized(evaluation.get(name), 'plain')]);
  }
  if (run.best) {
    const {metric, value, step} = run.best;
    rows.push(['Best evaluation', `${metric} ${format(value)} at step ${whole(step)}`]);
  }
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

// Rows of one run, or one column for each run; `columns` are Maps from a row's name to its text.
function table(columns) {
  const names = [...new Set(columns.flatMap((column) => [...column.keys()]))];
  if (!single) return comparison(names.map((name) => [name, columns.map((column) => column.get(name)), []]));
  return html('table', {class: 'single'}, html('tbody', {}, ...names.map((name) =>
    html('tr', {}, html('th', {scope: 'row'}, name), html('td', {}, String(columns[0].get(name)))))));
}

// "2026-11-28 22:03 UTC"
function timeOf(start) {
  const time = String(start?.start?.time ?? '');
  return time.replace(/^(\d{4}-\d\d-\d\d)T(\d\d:\d\d):\d\dZ$/, '$1 $2 UTC');
}

function showTitle() {
  const [run] = runs;
  const jobs = new Set(runs.map(nameOfJob));
  const job = jobs.size === 1 ? nameOfJob(run) : '';
  document.title = `${[runs.map(({name}) => name).join(', '), job].filter(Boolean).join(': ')} – satrap`;
  document.getElementById('title').textContent = single ? job || run.name : `Comparison of ${runs.length} runs`;
  const seconds = run.summary?.seconds, [start] = run.starts;
  const about = single ? [job && run.name, stateOf(run), plural(last(run.reports)?.step ?? 0, 'step'),
    isNumber(seconds) && run.starts.length < 2 ? duration(seconds) : '', timeOf(start)] : [job];
  document.getElementById('about').textContent = about.filter(Boolean).join(' · ');
}

function showResult() {
  const place = document.getElementById('result');
  if (single) {
    place.append(...headlineOf(runs[0]), ...sentences(runs[0]).map((text) => html('p', {class: 'said'}, text)));
  } else {
    place.append(...whatIsNotRanked(), comparison(comparedRows()));
  }
  const found = runs.flatMap(({name, findings}) => findings.map((text) => (single ? text : `${name}: ${text}`)));
  if (found.length > 0) {
    const items = found.map((text) => html('li', {}, text));
    place.append(html('h2', {}, 'Look at'), html('ul', {class: 'findings'}, ...items));
  }
}

// A table of the first evaluation for each label and column of train.slices.
function showSlices() {
  const titles = {...TITLES, examples: 'Examples', logloss: 'Logloss', calibration: 'Calibration'};
  const nameOf = ({value}) => (value === null ? 'all others' : value === '' ? '(empty)' : String(value));
  const place = document.getElementById('slices');
  for (const {name, used} of runs) {
    const labels = Object.entries(used.eval?.labels ?? {'': used.eval});
    for (const [label, numbers] of labels) {
      for (const [column, slices] of Object.entries(numbers?.slices ?? {}).filter(([, list]) => Array.isArray(list))) {
        const known = slices.filter((slice) => slice?.value !== undefined);
        const heads = Object.keys(known[0] ?? {}).filter((head) => !['value', 'weight'].includes(head));
        const body = known.map((slice) => html('tr', {},
          html('th', {scope: 'row'}, nameOf(slice)), ...heads.map((head) =>
            html('td', {}, head === 'examples' ? whole(slice[head]) : fixed(slice[head])))));
        const whose = [label && `of ${label}`, single ? '' : `in ${name}`].filter(Boolean).join(' ');
        place.append(html('h2', {}, `By ${column} ${whose}`.trim()), html('table', {class: 'slices'},
          html('thead', {}, html('tr', {}, html('th', {}, column),
            ...heads.map((head) => html('th', {scope: 'col'}, titles[head] ?? head)))), html('tbody', {}, ...body)));
      }
    }
  }
}

// What `satrap eval --importance` has found: a table of each run.
function showImportance() {
  const place = document.getElementById('slices');
  for (const {name, importance} of runs.filter((run) => Array.isArray(run.importance?.inputs))) {
    const text = (value, half) => (isNumber(value) ? `${fixed(value)} ± ${fixed(half)}` : '–');
    const known = importance.inputs.filter((one) => one?.input !== undefined);
    const changes = Object.keys(known[0] ?? {}).filter((key) => /_(rise|fall)$/.test(key));
    const titles = {...TITLES, logloss: 'Logloss'};
    const headOf = (change) => `${titles[change.slice(0, -5)]} ${change.slice(-4)}s by`;
    const body = known.map((one) => html('tr', {}, html('th', {scope: 'row'}, String(one.input)),
      ...changes.map((change) => html('td', {}, text(one[change], one[`${change}_interval`])))));
    place.append(html('h2', {}, `Importance of the inputs${single ? '' : ` in ${name}`}`),
      html('p', {class: 'said'}, 'How much worse the model of checkpoint '
        + `${importance.checkpoint} predicts if the values of an input are exchanged among the rows.`),
      html('table', {class: 'importance'}, html('thead', {}, html('tr', {},
        ...['Input', ...changes.map(headOf)].map((head) => html('th', {scope: 'col'}, head)))),
      html('tbody', {}, ...body)));
  }
}

function showDifferences() {
  if (single) return;
  const place = document.getElementById('differences');
  place.append(html('h2', {}, 'Differences of the configurations'));
  const columns = runs.map(({differences}) => new Map(differences));
  place.append(columns.every(({size}) => size === 0) ? html('p', {}, 'None, except run_dir.') : table(columns));
}

function showDetails() {
  const place = document.getElementById('details');
  const fold = (title, content) => place.append(html('details', {}, html('summary', {}, title), content));
  fold(single ? 'All numbers of the run' : 'All numbers of the runs',
    table(runs.map((run) => new Map(resultRows(run)))));
  for (const {name, config_text: config, summary} of runs) {
    const whose = single ? '' : ` of ${name}`;
    if (config) fold(`Configuration${whose}, every default written out`, html('pre', {}, config));
    if (summary) fold(`summary.json${whose}`, html('pre', {}, JSON.stringify(summary, null, 2)));
  }
}

// ---------------------------------------------------------------------------------------- charts

const runColour = (run) => `--c${run % 7}`;

const AXES = {step: {kind: 'count', name: 'step'}, time: {kind: 'seconds', name: 'training time'}};
let axis = 'step';  // of AXES: what the curves are drawn over
const at = (line) => line[axis];

const entry = (sample, name) => html('span', {}, curveSample(sample), name);
const runEntries = () => (single ? [] : runs.map(({name}, r) => entry({colour: runColour(r)}, name)));

// The place of the best evaluation on the axis; undefined: there is none.
const bestPlace = ({best, evaluations}) =>
  (best === null ? undefined : at(evaluations.find(({step}) => step === best.step)));

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

// A chart per label: the predictions of the first evaluation against what came of them.
function reliabilityCharts() {
  const isCounts = (list) => Array.isArray(list) && list.every(isNumber);
  const binsOf = ({used}, label) => {
    const {examples, predicted, positives, weight = examples} =
      used.reliability.find((one) => one?.label === label) ?? {};
    if (![examples, predicted, positives, weight].every(isCounts)) return [];
    return examples.map((count, i) =>
      ({examples: count, predicted: predicted[i], positives: positives[i], weight: weight[i]}));
  };
  const labels = new Set(runs.flatMap(({used}) => used.reliability.map((one) => one?.label)));
  return [...labels].map((label) => reliabilityChart({
    title: labels.size > 1 ? `Reliability of ${label}` : 'Reliability',
    series: runs.map((run, r) => ({name: single ? '' : run.name, colour: runColour(r), bins: binsOf(run, label)})),
    legend: runEntries()})).filter((chart) => chart !== null);
}

function machineCharts() {
  return [
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
  ];
}

function showCharts() {
  const fill = (id, charts) => {
    const found = charts.filter((chart) => chart !== null);
    document.getElementById(id).replaceChildren(...found);
    return found.length;
  };
  const drawn = [fill('charts', [...metricCharts(), ...reliabilityCharts()]), fill('machine-charts', machineCharts())];
  document.getElementById('machine').hidden = drawn[1] === 0;
  if (drawn[0] + drawn[1] === 0) {
    document.getElementById('charts').append(html('p', {}, 'Nothing has been reported yet.'));
  }
}

showTitle();
showResult();
showDifferences();
showSlices();
showImportance();
showCharts();
showDetails();
for (const choice of document.querySelectorAll('input[name=axis]')) {
  choice.addEventListener('change', () => {
    axis = choice.value;
    showCharts();
  });
}

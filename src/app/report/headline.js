'use strict';
// The headline: what was trained on which data, the metrics of the checkpoint that is used, and how runs compare.

// Metrics in their order here, with what their values mean; others follow with their own names.
const HEADLINE = {
  auc: ['AUC', '1 is perfect, 0.5 chance'],
  gauc: ['AUC within groups', '1 is perfect, 0.5 chance'],
  loss: ['Logloss', 'less is better'],
  ne: ['Normalised entropy', '1 is the base rate, less is better'],
  calibration: ['Calibration', 'mean p / mean label, 1 is right'],
  ap: ['Average precision', '1 is perfect, the share of positives chance'],
  rmse: ['RMSE', 'root of the mean of (value - label)², less is better'],
  mae: ['MAE', 'mean of |value - label|, less is better'],
  r2: ['R²', '1 is perfect, 0 always the mean label'],
  accuracy: ['Accuracy', 'share of rows whose likeliest class is right'],
  brier: ['Brier score', 'mean of (p - label)², less is better'],
};

const fixed = (value) => (isNumber(value) ? value.toFixed(5) : '–');
const plural = (count, noun) => `${whole(count)} ${noun}${count === 1 ? '' : 's'}`;

// "deepfm on clicks.csv"; "": unknown.
function nameOfJob(run) {
  const model = new Map(run.config).get('model.type') ?? '';
  return model && run.data ? `${model} on ${run.data}` : model || run.data;
}

// [[label or '', Map of metrics], ...] of an evaluation, or of a training window; of known order.
function metricsByLabel(numbers) {
  const labels = Object.entries(numbers?.labels ?? {});
  return (labels.length > 0 ? labels : [['', numbers ?? {}]]).map(([label, own]) => {
    const {labels: _, ...plain} = own ?? {};
    const found = metricsOf(plain);
    const names = [...new Set([...Object.keys(HEADLINE), ...found.keys()])].filter((name) => found.has(name));
    return [label, new Map(names.map((name) => [name, found.get(name)]))];
  });
}

// Names the checkpoint that the metrics of the headline are of.
function describeUsed({used, summary, config}) {
  const metric = new Map(config).get('train.early_stopping.metric') ?? 'auc';
  if (used.step < 0) return '';
  const at = `step ${whole(used.step)}`;
  if (used.is_best) return `${at}, the best by ${metric}`;
  return summary?.finished && summary.step === used.step ? `${at}, the last` : `${at}, so far the last`;
}

const hasEvaluation = ({used}) => Object.keys(used.eval).length > 0;

function sentences(run) {
  const {used, summary} = run, {examples} = used.eval;
  if (!hasEvaluation(run)) {
    return run.reports.length === 0 ? [] : [
      'Of the last training window, each example scored before it was trained on; there is no evaluation.'];
  }
  const isKept = summary && (used.is_best || summary.step === used.step);
  const step = describeUsed(run);
  const rows = [isNumber(examples) ? plural(examples, 'example') : '', run.evaluation_data].filter(Boolean);
  return [
    step && `Evaluated at ${step}${isKept ? ': the checkpoint that eval, predict and export use' : ''}.`,
    rows.length > 0 && `On ${rows.join(': ')}.`].filter(Boolean);
}

// The metrics of each label as tiles; in small those of the last training window and evaluation, if others.
function headlineOf(run) {
  const {used} = run, latest = last(run.evaluations), training = last(run.reports)?.train;
  const isLast = !latest || latest.step === used.step;
  const besides = hasEvaluation(run)
    ? [['training', training], ...(isLast ? [] : [['last evaluation', latest.eval]])]
      .map(([what, numbers]) => [what, new Map(metricsByLabel(numbers))]) : [];
  const tile = (label, name, value) => html('div', {},
    html('dt', {}, HEADLINE[name]?.[0] ?? name), html('dd', {class: 'value'}, fixed(value)),
    ...besides.filter(([, labels]) => labels.get(label)?.has(name)).map(([what, labels]) =>
      html('dd', {class: 'beside'}, html('span', {}, `${what} `), fixed(labels.get(label).get(name)))),
    html('dd', {class: 'meaning'}, HEADLINE[name]?.[1] ?? ''));
  return metricsByLabel(hasEvaluation(run) ? used.eval : training).filter(([, metrics]) => metrics.size > 0)
    .flatMap(([label, metrics]) => [...(label ? [html('h2', {}, label)] : []),
      html('dl', {class: 'metrics'}, ...[...metrics].map(([name, value]) => tile(label, name, value)))]);
}

// ------------------------------------------------------------------------------------ comparison

// How far a value of a metric is from the best there is, in a sense in which less is better.
function distance(name, value) {
  const metric = lastPart(name);
  if (metric === 'calibration') return Math.abs(Math.log(value));
  if (['auc', 'gauc', 'ap', 'r2', 'accuracy'].includes(metric) || /^(ndcg|recall)@/.test(metric)) return -value;
  return ['loss', 'ne', 'brier', 'rmse', 'mae'].includes(metric) ? value : NaN;
}

// The runs whose value of a metric, [one of each run], is the best among runs over the same data.
function bestRuns(name, values) {
  return groups.flatMap(({runs: members}) => {
    const known = members.filter((r) => isNumber(values[r]) && isNumber(distance(name, values[r])));
    const best = Math.min(...known.map((r) => distance(name, values[r])));
    const found = known.filter((r) => distance(name, values[r]) === best);
    return found.length < known.length ? found : [];
  });
}

// [row, [text of each run], runs to mark], for a table.
function comparedRows() {
  const texts = (name, textOf) => [name, runs.map(textOf), []];
  const metrics = runs.map(({used}) => metricsOf(used.eval));
  const names = [...new Set([...Object.keys(HEADLINE), ...metrics.flatMap((one) => [...one.keys()])])];
  const rows = names.map((name) => {
    const values = metrics.map((one) => one.get(name));
    const title = HEADLINE[name]?.[0] ?? titleOf(name);
    return [title, values.map((value) => (isNumber(value) ? fixed(value) : '')), bestRuns(name, values)];
  });
  const jobs = runs.map(nameOfJob);
  return [
    ...rows,
    texts('Evaluated at', describeUsed),
    texts('Evaluation data', (run) => run.evaluation_data),
    texts('Evaluation examples', ({used}) => whole(used.eval.examples)),
    ...(new Set(jobs).size > 1 ? [texts('Job', nameOfJob)] : []),
    texts('State', stateOf),
    texts('Steps', (run) => whole(last(run.reports)?.step)),
    texts('Examples/s', ({summary}) => whole(Math.round(summary?.examples_per_second))),
  ].filter(([, values]) => values.some(Boolean));
}

// One column for each run; on a narrow page a block for each row (page.css).
function comparison(rows) {
  const head = html('tr', {}, html('th'), ...runs.map(({name}, r) =>
    html('th', {scope: 'col'}, curveSample({colour: runColour(r)}), ' ', name)));
  const body = rows.map(([name, values, marked]) => html('tr', {}, html('th', {scope: 'row'}, name),
    ...values.map((value, r) => html('td', {'data-run': runs[r].name, style: `--run: var(${runColour(r)})`,
      ...(marked.includes(r) ? {class: 'best', title: 'best of the runs over the same data'} : {})}, value || '–'))));
  return html('table', {class: 'runs'}, html('thead', {}, head), html('tbody', {}, ...body));
}

function whatIsNotRanked() {
  if (groups.length < 2) return [];
  const namesOf = ({runs: members}) => members.map((r) => runs[r].name).join(', ');
  const items = groups.slice(1).map((group) => html('li', {}, `${namesOf(group)}: ${group.differences.join('; ')}`));
  return [html('div', {class: 'notice'},
    html('p', {}, `Not all runs are ranked together: they were evaluated on other data than ${namesOf(groups[0])}, `
      + 'so that their metrics say nothing about which is better.'), html('ul', {}, ...items))];
}

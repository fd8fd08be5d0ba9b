'use strict';
// Charts as SVG, and their common code. All text enters the page as text.

const create = (namespace) => (tag, attributes = {}, ...children) => {
  const node = document.createElementNS(namespace, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
};
const html = create('http://www.w3.org/1999/xhtml');
const svg = create('http://www.w3.org/2000/svg');

// Units by the size of a number: [divisor, suffix, the smallest number in it if not divisor], the smallest first.
const UNITS = {
  plain: [[1, '']],
  percent: [[0.01, '%']],
  count: [[1, ''], [1e3, 'k', 1e4], [1e6, 'M'], [1e9, 'G'], [1e12, 'T']],
  seconds: [[1, ' s'], [60, ' min'], [3600, ' h'], [86400, ' d']],
  milliseconds: [[1, ' ms'], [1000, ' s']],
  bytes: [[1, ' B'], [2 ** 10, ' KiB'], [2 ** 20, ' MiB'], [2 ** 30, ' GiB'], [2 ** 40, ' TiB']],
};
const unitFor = (kind, size) =>
  UNITS[kind].findLast(([divisor, , from = divisor]) => Math.abs(size) >= from) ?? UNITS[kind][0];

// "12.3 GiB", "0.45123": for display, not for parsing.
function format(value, kind = 'plain') {
  if (typeof value !== 'number') return '–';
  const [divisor, suffix] = unitFor(kind, value);
  const scaled = value / divisor;
  const isWhole = Number.isInteger(scaled) && Math.abs(scaled) < 1e15;
  return (isWhole ? String(scaled) : String(Number(scaled.toPrecision(5)))) + suffix;
}

// "850 ms", "3 min 20 s", "2 h 5 min".
function duration(seconds) {
  if (seconds < 60) return format(Number(seconds.toPrecision(3)), 'seconds');
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.floor(seconds % 60)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

// Round numbers between `low` and `high` in a suitable unit, with their labels.
function ticks(low, high, kind, wanted, wholeOnly) {
  const [divisor, suffix] = unitFor(kind, Math.max(Math.abs(low), Math.abs(high)));
  const raw = (high - low) / divisor / wanted;
  const power = 10 ** Math.floor(Math.log10(raw));
  let step = power * [1, 2, 5, 10].find((multiple) => raw <= multiple * power * (1 + 1e-9));
  if (wholeOnly) step = Math.max(1 / divisor, step);
  const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const found = [];
  for (let i = Math.ceil(low / divisor / step - 1e-9); i * step * divisor <= high + 1e-9 * (high - low); ++i) {
    found.push([i * step * divisor, i === 0 ? '0' : (i * step).toFixed(decimals) + suffix]);
  }
  return found;
}

const SIZE = {width: 480, height: 250, left: 62, right: 12, top: 8, bottom: 38};

// An empty chart over the ranges of `x` ({low, high, kind, name, marks: [[value, label], ...] or none}) and `y`: axes and
// scales.
function frame(title, x, y) {
  const right = SIZE.width - SIZE.right, bottom = SIZE.height - SIZE.bottom;
  const place = {
    x: (value) => SIZE.left + (right - SIZE.left) * (value - x.low) / (x.high - x.low),
    y: (value) => bottom - (bottom - SIZE.top) * (value - y.low) / (y.high - y.low),
  };
  const root = svg('svg', {viewBox: `0 0 ${SIZE.width} ${SIZE.height}`, role: 'img', 'aria-label': title});
  for (const [value, label] of y.marks ?? ticks(y.low, y.high, y.kind, 7, false)) {
    const at = place.y(value);
    root.append(svg('line', {class: 'grid', x1: SIZE.left, x2: right, y1: at, y2: at}),
      svg('text', {x: SIZE.left - 6, y: at + 4, 'text-anchor': 'end'}, label));
  }
  for (const [value, label] of x.marks ?? ticks(x.low, x.high, x.kind, 6, x.kind === 'count')) {
    root.append(svg('text', {x: place.x(value), y: bottom + 15, 'text-anchor': 'middle'}, label));
  }
  root.append(svg('text', {x: (SIZE.left + right) / 2, y: bottom + 31, 'text-anchor': 'middle'}, x.name));
  return {root, place, bottom};
}

const isNumber = (value) => typeof value === 'number' && Number.isFinite(value);

// The range of some numbers, not empty, with a small margin.
function range(values, fromZero, kind) {
  let low = fromZero ? 0 : Infinity, high = fromZero ? 0 : -Infinity;
  for (const value of values) {
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  if (low === high) {
    high += Math.abs(high) * 0.05 || 1;
    if (!fromZero) low -= Math.abs(low) * 0.05 || 1;
  }
  const air = 0.04 * (high - low);
  return {low: fromZero ? low : low - air, high: high + air, kind};
}

function figure(title, legend, root) {
  return html('figure', {}, html('figcaption', {}, title), html('p', {class: 'legend'}, ...legend), root);
}

const curveSample = ({colour, dashed, dotted}) => svg('svg', {class: 'sample', viewBox: '0 0 22 8'},
  svg('path', {class: dashed ? 'curve dashed' : 'curve', style: `stroke: var(${colour})`, d: 'M1,4H21'}),
  ...(dotted ? [dot('eval-dot', colour, 11, 4, 2.8)] : []));
const dot = (kind, colour, cx, cy, r) => svg('circle', {class: kind, style: `stroke: var(${colour})`, cx, cy, r});
const bestSample = (colour) => svg('svg', {class: 'sample ring', viewBox: '0 0 22 16'},
  dot('eval-dot', colour, 11, 8, 3), dot('best-dot', colour, 11, 8, 6.5));
const intervalSample = (colour) => svg('svg', {class: 'sample ring', viewBox: '0 0 22 16'},
  svg('path', {class: 'curve interval', style: `stroke: var(${colour})`, d: 'M11,1V15'}), dot('eval-dot', colour, 11, 8, 3));
const diagonalSample = () => svg('svg', {class: 'sample', viewBox: '0 0 22 8'},
  svg('line', {class: 'diagonal', x1: 1, y1: 4, x2: 21, y2: 4}));
const areaSample = (colour) => html('span', {class: 'swatch', style: `background: var(${colour})`});

// A path through the points, broken where one is null, with dots at isolated ones.
function pathsThrough(points, place) {
  let curve = '', dots = '';
  points.forEach(([x, y], i) => {
    if (!isNumber(y)) return;
    const at = `${place.x(x).toFixed(1)},${place.y(y).toFixed(1)}`;
    const before = isNumber(points[i - 1]?.[1]), after = isNumber(points[i + 1]?.[1]);
    curve += (before ? 'L' : 'M') + at;
    if (!before && !after) dots += `M${at}h0`;
  });
  return {curve, dots};
}

// series: [{name, colour, dashed, dotted, best, points: [[x, y], ...]}], some with points; dotted ones have a hollow
// dot at each point, and a ring around that at x = best; x: {kind, name}; kinds are of
// UNITS; marks: x of lines across.
function lineChart({title, series, legend, x: axis, yKind, fromZero, marks = []}) {
  const points = series.flatMap((one) => one.points).filter(([, y]) => isNumber(y));
  const x = {...range(points.map(([value]) => value), true, axis.kind), name: axis.name};
  const {root, place, bottom} = frame(title, x, range(points.map(([, value]) => value), fromZero, yKind));
  const across = (name, at) => svg('line', {class: name, x1: at, x2: at, y1: SIZE.top, y2: bottom});
  for (const mark of marks) root.append(across('resumed', place.x(mark)));
  for (const {colour, dashed, dotted, best, points: own} of series) {
    const {curve, dots} = pathsThrough(own, place), style = `stroke: var(${colour})`;
    root.append(svg('path', {class: dashed ? 'curve dashed' : 'curve', style, d: curve}));
    if (!dotted) {
      if (dots !== '') root.append(svg('path', {class: 'dots', style, d: dots}));
      continue;
    }
    for (const [px, py] of own.filter(([, value]) => isNumber(value))) {
      root.append(dot('eval-dot', colour, place.x(px), place.y(py), 3));
      if (px === best) root.append(dot('best-dot', colour, place.x(px), place.y(py), 6.5));
    }
  }
  const guide = across('guide', 0), readout = html('p', {class: 'readout'});
  root.append(guide);
  root.addEventListener('pointermove', (event) => {
    const box = root.getBoundingClientRect();
    const at = (event.clientX - box.left) * SIZE.width / box.width;
    const distance = ([value]) => Math.abs(place.x(value) - at);
    const nearest = (some) => some.reduce((best, one) => (distance(one) < distance(best) ? one : best));
    const [there] = nearest(points);
    guide.setAttribute('transform', `translate(${place.x(there)} 0)`);
    guide.style.visibility = 'visible';
    const values = series.map((one) => `${one.name} ${format(nearest(one.points)[1], yKind)}`);
    readout.textContent = [`${axis.name} ${format(there, axis.kind)}`, ...values].join(' · ');
  });
  root.addEventListener('pointerleave', () => {
    guide.style.visibility = 'hidden';
    readout.textContent = '';
  });
  const result = figure(title, legend, root);
  result.append(readout);
  return result;
}

// layers: [{name, colour}]; intervals: [{from, to, values: [one for each layer]}], at least one of each.
function stackedChart({title, layers, intervals, x: axis, yKind}) {
  const sum = (values) => values.reduce((total, value) => total + value, 0);
  const x = {...range(intervals.map(({to}) => to), true, axis.kind), name: axis.name};
  const {root, place} = frame(title, x, range(intervals.map(({values}) => sum(values)), true, yKind));
  layers.forEach(({name, colour}, layer) => {
    const path = intervals.map(({from, to, values}) => {
      const low = sum(values.slice(0, layer));
      const [left, right] = [place.x(from), place.x(to)].map((at) => at.toFixed(1));
      const [bottom, top] = [place.y(low), place.y(low + values[layer])].map((at) => at.toFixed(1));
      return `M${left},${bottom}V${top}H${right}V${bottom}Z`;
    });
    root.append(svg('path', {class: 'layer', style: `fill: var(${colour})`, d: path.join('')},
      svg('title', {}, name)));
  });
  const legend = layers.map(({name, colour}) => html('span', {}, areaSample(colour), name));
  return figure(title, legend, root);
}

// groups: [{colour, values: [share of 0, share of 1, ...]}], some with values.
function histogramChart({title, groups, legend, xName}) {
  const size = Math.max(...groups.map(({values}) => values.length));
  const x = {low: -0.5, high: size - 0.5, kind: 'count', name: xName};
  const {root, place} = frame(title, x, range(groups.flatMap(({values}) => values), true, 'percent'));
  const width = (place.x(1) - place.x(0)) * 0.8 / groups.length;
  groups.forEach(({colour, values}, group) => {
    values.forEach((share, value) => root.append(svg('rect', {
      style: `fill: var(${colour})`, x: place.x(value - 0.4) + group * width, width,
      y: place.y(share), height: place.y(0) - place.y(share)},
      svg('title', {}, `${value}: ${format(share, 'percent')}`))));
  });
  return figure(title, legend, root);
}

// ------------------------------------------------------------------------------------ reliability

const MIN_BIN = 50;  // examples: smaller bins say little and are joined with the next
const LOG_RATIO = 50;  // of the largest to the smallest prediction, from which on scales are logarithmic

// The bounds of the share of positives with 95 % confidence: Wilson 1927, J. Am. Stat. Assoc. 22.
function wilson(positives, examples) {
  const z = 1.96, share = positives / examples, scale = 1 + z * z / examples;
  const middle = (share + z * z / (2 * examples)) / scale;
  const half = z * Math.sqrt(share * (1 - share) / examples + (z / (2 * examples)) ** 2) / scale;
  return [Math.max(0, middle - half), Math.min(1, middle + half)];
}

// Points of {predicted, observed, low, high, weight, positives}; the interval is of as many examples, as if
// they weighed the same.
function reliabilityPoints(bins) {
  const joined = [];
  for (const bin of bins.filter(({examples}) => examples > 0)) {
    const before = last(joined);
    if (before === undefined || before.examples >= MIN_BIN) {
      joined.push({...bin});
    } else {
      for (const name of ['examples', 'predicted', 'positives', 'weight']) before[name] += bin[name];
    }
  }
  return joined.map(({examples, predicted, positives, weight}) => {
    const observed = positives / weight;
    const [low, high] = wilson(observed * examples, examples);
    return {predicted: predicted / weight, observed, low, high, weight, positives};
  }).filter((point) => Object.values(point).every(isNumber));
}

// The range of both axes for probabilities up to `high`, and how a probability is placed on them.
function probabilityScale(points) {
  const predictions = points.map(({predicted}) => predicted).filter((p) => p > 0);
  const high = Math.min(1, 1.05 * Math.max(1e-9, ...points.flatMap((point) => [point.predicted, point.high])));
  const least = Math.min(...predictions);
  if (!(Math.max(...predictions) > LOG_RATIO * least)) return {low: 0, high, kind: 'percent', place: (p) => p};
  const low = Math.log10(least / 2), top = Math.log10(high), marks = [];
  const factors = top - low > 3 ? [1] : [1, 2, 5];
  for (let power = Math.floor(low); power <= top; ++power) {
    for (const factor of factors) {
      const at = Math.log10(factor) + power;
      if (at >= low && at <= top) marks.push([at, format(Number((factor * 10 ** power).toPrecision(1)), 'percent')]);
    }
  }
  return {low, high: top, kind: 'percent', marks, place: (p) => Math.max(low, Math.log10(p))};
}

// Predictions beside outcomes. series: [{name, colour, bins: [{examples, predicted, positives,
// weight}]}]. Null without bins.
function reliabilityChart({title, series, legend}) {
  const drawn = series.map((one) => ({...one, points: reliabilityPoints(one.bins)}))
    .filter(({points}) => points.length > 0);
  if (drawn.length === 0) return null;
  const scale = probabilityScale(drawn.flatMap(({points}) => points));
  const {root, place: linear} = frame(title, {...scale, name: 'mean predicted probability'}, scale);
  const place = {x: (p) => linear.x(scale.place(p)), y: (p) => linear.y(scale.place(p))};
  const [from, to] = [scale.low, scale.high];
  root.append(svg('line', {
    class: 'diagonal', x1: linear.x(from), y1: linear.y(from), x2: linear.x(to), y2: linear.y(to)}));
  for (const {colour, points} of drawn) {
    const style = `stroke: var(${colour})`;
    const bars = points.map(({predicted, low, high}) =>
      `M${place.x(predicted).toFixed(1)},${place.y(low).toFixed(1)}V${place.y(high).toFixed(1)}`);
    root.append(svg('path', {class: 'curve interval', style, d: bars.join('')}));
    for (const {predicted, observed} of points) {
      root.append(dot('eval-dot', colour, place.x(predicted), place.y(observed), 3.2));
    }
  }
  const readout = html('p', {class: 'readout'});
  root.addEventListener('pointermove', (event) => {
    const box = root.getBoundingClientRect();
    const at = (event.clientX - box.left) * SIZE.width / box.width;
    const nearest = ({points}) => points.reduce((best, one) =>
      (Math.abs(place.x(one.predicted) - at) < Math.abs(place.x(best.predicted) - at) ? one : best));
    readout.textContent = drawn.map((one) => {
      const {predicted, observed, weight, positives} = nearest(one);
      return [one.name, `predicted ${format(predicted, 'percent')}, observed ${format(observed, 'percent')}`
        + ` (${Number(positives.toFixed(1))} of ${Number(weight.toFixed(1))})`].filter(Boolean).join(' ');
    }).join(' · ');
  });
  root.addEventListener('pointerleave', () => { readout.textContent = ''; });
  const sampleOf = drawn.length === 1 ? drawn[0].colour : '--faint';
  const result = figure(title, [...legend,
    html('span', {}, intervalSample(sampleOf), 'share of positives of similar predictions, with its 95 % interval'),
    html('span', {}, diagonalSample(), 'as predicted')], root);
  result.append(readout);
  return result;
}

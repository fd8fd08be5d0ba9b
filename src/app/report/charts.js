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

// Units by the size of a number: [divisor, suffix], the smallest first.
const UNITS = {
  plain: [[1, '']],
  percent: [[0.01, '%']],
  count: [[1, ''], [1e3, 'k'], [1e6, 'M'], [1e9, 'G'], [1e12, 'T']],
  seconds: [[1, ' s'], [60, ' min'], [3600, ' h'], [86400, ' d']],
  milliseconds: [[1, ' ms'], [1000, ' s']],
  bytes: [[1, ' B'], [2 ** 10, ' KiB'], [2 ** 20, ' MiB'], [2 ** 30, ' GiB'], [2 ** 40, ' TiB']],
};
const unitFor = (kind, size) =>
  UNITS[kind].findLast(([divisor]) => Math.abs(size) >= divisor) ?? UNITS[kind][0];

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
  if (seconds < 60) return format(seconds, 'seconds');
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
  if (wholeOnly) step = Math.max(1, step);
  const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const found = [];
  for (let i = Math.ceil(low / divisor / step - 1e-9); i * step * divisor <= high + 1e-9 * (high - low); ++i) {
    found.push([i * step * divisor, i === 0 ? '0' : (i * step).toFixed(decimals) + suffix]);
  }
  return found;
}

const SIZE = {width: 480, height: 250, left: 62, right: 12, top: 8, bottom: 38};

// An empty chart over the ranges of `x` ({low, high, kind, name}) and `y`: axes and scales.
function frame(title, x, y) {
  const right = SIZE.width - SIZE.right, bottom = SIZE.height - SIZE.bottom;
  const place = {
    x: (value) => SIZE.left + (right - SIZE.left) * (value - x.low) / (x.high - x.low),
    y: (value) => bottom - (bottom - SIZE.top) * (value - y.low) / (y.high - y.low),
  };
  const root = svg('svg', {viewBox: `0 0 ${SIZE.width} ${SIZE.height}`, role: 'img', 'aria-label': title});
  for (const [value, label] of ticks(y.low, y.high, y.kind, 7, false)) {
    const at = place.y(value);
    root.append(svg('line', {class: 'grid', x1: SIZE.left, x2: right, y1: at, y2: at}),
      svg('text', {x: SIZE.left - 6, y: at + 4, 'text-anchor': 'end'}, label));
  }
  for (const [value, label] of ticks(x.low, x.high, x.kind, 6, x.kind === 'count')) {
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

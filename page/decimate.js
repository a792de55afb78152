// Many points on few pixels without losing a spike: of each column of pixels the least and the greatest are drawn.

/** { x, y } of a series as typed arrays, in the order of x. */
export function columns(points, xOf) {
  const x = new Float64Array(points.length), y = new Float64Array(points.length);
  let sorted = true;
  for (let i = 0; i < points.length; i++) {
    x[i] = xOf(points[i]);
    y[i] = points[i][1];
    if (i && x[i] < x[i - 1]) sorted = false;
  }
  if (sorted) return { x, y };
  const order = Uint32Array.from(x.keys()).sort((a, b) => x[a] - x[b]);
  return { x: Float64Array.from(order, (i) => x[i]), y: Float64Array.from(order, (i) => y[i]) };
}

/**
 * uPlot's aligned data of many series between two ends: one row of x, shared by all, then a row of y for each.
 * Few points stay as they are. Else every column of pixels has two places, where each series puts its least and its
 * greatest value in the order in which they came.
 */
export function aligned(series, from, to, width) {
  const few = series.reduce((sum, one) => sum + one.x.length, 0) <= width;
  return few ? exact(series, from, to) : folded(series, from, to, Math.max(16, Math.floor(width)));
}

function exact(series, from, to) {
  const xs = Float64Array.from(new Set(series.flatMap((one) => Array.from(one.x)))).filter((x) => x >= from && x <= to).sort();
  const place = new Map(Array.from(xs, (x, i) => [x, i]));
  return [xs, ...series.map((one) => {
    const row = new Array(xs.length); // undefined where this series has no point: uPlot draws across it
    for (let i = 0; i < one.x.length; i++) if (place.has(one.x[i])) row[place.get(one.x[i])] = one.y[i];
    return row;
  })];
}

function folded(series, from, to, count) {
  const step = (to - from) / count || 1;
  const xs = Float64Array.from({ length: 2 * count }, (_, i) => from + (Math.floor(i / 2) + (i % 2 ? 0.75 : 0.25)) * step);
  return [xs, ...series.map((one) => fold(one, from, step, count))];
}

function fold({ x, y }, from, step, count) {
  const row = new Array(2 * count), end = from + step * count;
  let i = first(x, from);
  while (i < x.length && x[i] <= end) {
    const column = Math.min(count - 1, Math.floor((x[i] - from) / step));
    const until = column === count - 1 ? Infinity : from + (column + 1) * step;
    let low = i, high = i;
    for (i++; i < x.length && x[i] < until && x[i] <= end; i++) {
      if (y[i] < y[low]) low = i;
      else if (y[i] > y[high]) high = i;
    }
    const [a, b] = low < high ? [low, high] : [high, low];
    row[2 * column] = y[a];
    if (a !== b) row[2 * column + 1] = y[b];
  }
  return row;
}

/** The place of the first value that is not less. */
function first(x, value) {
  let low = 0, high = x.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (x[middle] < value) low = middle + 1; else high = middle;
  }
  return low;
}

/** First, last, least, greatest and trend of a series; null without points. */
export function summary({ x, y }) {
  if (!x.length) return null;
  let least = 0, greatest = 0;
  for (let i = 1; i < y.length; i++) {
    if (y[i] < y[least]) least = i;
    if (y[i] > y[greatest]) greatest = i;
  }
  const tail = Math.max(1, Math.floor(y.length / 10)), range = y[greatest] - y[least];
  const mean = (from, to) => { let sum = 0; for (let i = from; i < to; i++) sum += y[i]; return sum / (to - from); };
  const change = y.length < 3 ? y.at(-1) - y[0] : mean(y.length - tail, y.length) - mean(Math.max(0, y.length - 3 * tail), y.length - tail);
  const trend = Math.abs(change) < 0.01 * range || range === 0 ? "level" : change > 0 ? "rising" : "falling";
  return { points: y.length, first: y[0], last: y.at(-1), least: y[least], leastAt: x[least], greatest: y[greatest], greatestAt: x[greatest], trend };
}

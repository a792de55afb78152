// A series of points as typed arrays, and what it says in numbers.

/**
 * { x, y } of a series as typed arrays, in the order of x.
 * @param {number[][]} points [step, value, ...] each
 * @param {(point: number[]) => number} xOf
 */
export function columns(points, xOf) {
  const x = new Float64Array(points.length),
    y = new Float64Array(points.length);
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
 * First, last, least, greatest and trend of a series; null without points.
 * @param {{ x: ArrayLike<number>, y: Float64Array | number[] }} series
 */
export function summary({ x, y }) {
  if (!x.length) return null;
  let least = 0,
    greatest = 0;
  for (let i = 1; i < y.length; i++) {
    if (y[i] < y[least]) least = i;
    if (y[i] > y[greatest]) greatest = i;
  }
  const tail = Math.max(1, Math.floor(y.length / 10)),
    range = y[greatest] - y[least];
  const mean = (/** @type {number} */ from, /** @type {number} */ to) => {
    let sum = 0;
    for (let i = from; i < to; i++) sum += y[i];
    return sum / (to - from);
  };
  const change =
    y.length < 3
      ? y[y.length - 1] - y[0]
      : mean(y.length - tail, y.length) - mean(Math.max(0, y.length - 3 * tail), y.length - tail);
  const trend = Math.abs(change) < 0.01 * range || range === 0 ? "level" : change > 0 ? "rising" : "falling";
  return {
    points: y.length,
    first: y[0],
    last: y[y.length - 1],
    least: y[least],
    leastAt: x[least],
    greatest: y[greatest],
    greatestAt: x[greatest],
    trend,
  };
}

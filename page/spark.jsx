// A curve in words, and as a picture in a row of a table.
import { summary } from "./series.js";
import { metric, number, visible } from "./format.js";

import { W } from "./words.js";

/**
 * What a curve is like, in words: `name` is its metric, if the label is another's, such as a run's.
 * @param {string} label
 * @param {NonNullable<ReturnType<typeof summary>>} found
 */
export const spoken = (label, { points, trend, ...found }, name = label) =>
  W.chart.summary({
    name: visible(label),
    points,
    trend: /** @type {Record<string, any>} */ (W.chart)[trend],
    ...Object.fromEntries(
      Object.entries(found).map(([key, value]) => [key, key.endsWith("At") ? number(value) : metric(name, value)]),
    ),
  });

/**
 * A curve in a row of a table: a picture of its shape, with the summary as its name.
 * @param {{ name: string, points: number[][] | undefined }} props
 */
export function Spark({ name, points }) {
  if (!points || points.length < 2) return <span class="dim">{W.nothing}</span>;
  const x = points.map((point) => point[0]),
    y = points.map((point) => point[1]),
    found = /** @type {NonNullable<ReturnType<typeof summary>>} */ (summary({ x, y })); // of two points or more
  const across = (/** @type {number} */ value) => ((value - x[0]) / (x[x.length - 1] - x[0] || 1)) * 96 + 2,
    up = (/** @type {number} */ value) => 22 - ((value - found.least) / (found.greatest - found.least || 1)) * 20;
  return (
    <svg class="spark" viewBox="0 0 100 24" role="img" aria-label={spoken(name, found)} preserveAspectRatio="none">
      <polyline points={x.map((value, i) => `${across(value).toFixed(1)},${up(y[i]).toFixed(1)}`).join(" ")} />
    </svg>
  );
}

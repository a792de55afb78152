// A part of long curves with all its points: the API gives at most 2,000 of a series, but of any steps.
import { get } from "./api.js";
import { own } from "./own.js";
import { columns } from "./series.js";

const LONG = 1000; // points; a shorter series is all there is

/**
 * What a chart asks when somebody zooms. `runs`: [{ run, all, ...how it is drawn }], `all` being the Map of its series;
 * `place(all)` gives where a point is drawn. Undefined where no series is long.
 */
export function finer(runs, metric, place) {
  const known = runs.filter(({ all }) => all.has(metric));
  if (!known.some(({ all }) => all.get(metric).length >= LONG)) return undefined;
  return async (from, to) => {
    const [first, last] = steps(
      known.map(({ all }) => all.get(metric)),
      known.map(({ all }) => place(all)),
      from,
      to,
    );
    const { runs: found } = await get(
      ["curves"],
      { runs: known.map(({ run }) => run).join(","), name: metric, first, last },
      { keep: false },
    );
    return known.map(({ run, all, ...drawn }) => ({
      ...drawn,
      ...columns(own(own(found, run), metric) || [], place(all)),
    }));
  };
}

/** The steps that lie between two places, and one further on each side, so that the lines go on to the edges. */
function steps(series, places, from, to) {
  let first = Infinity,
    last = -Infinity;
  series.forEach((points, i) => {
    const inside = points
      .map((point, at) => [places[i](point), at])
      .filter(([x]) => x >= from && x <= to)
      .map(([, at]) => at);
    if (!inside.length) return;
    first = Math.min(first, points[Math.max(0, inside[0] - 1)][0]);
    last = Math.max(last, points[Math.min(points.length - 1, inside.at(-1) + 1)][0]);
  });
  return first <= last ? [first, last] : [from, to];
}

// The curves of a run, and what a point is drawn across.
import { Chart } from "../../chart.jsx";
import { finer } from "../../finer.js";
import { ordered } from "../../metric.js";
import { refine } from "../../route.js";
import { columns } from "../../series.js";
import { W } from "../../words.js";
import { useMemo } from "preact/hooks";

/** `series`: a Map of points by metric. `span`: the first and last second of the drawing, if it is across time. */
export function Curves({ run, series, query, span }) {
  const names = ordered([...series.keys()].filter((name) => name !== "epoch")),
    how = query.x || "step",
    logarithmic = query.log === "1";
  const drawn = useMemo(
    () =>
      names.map(
        (name) =>
          /** @type {[string, any[], ReturnType<typeof finer>]} */ ([
            name,
            [{ name, label: "", ...columns(series.get(name), placing(how, series)) }],
            finer([{ run, all: series, name, label: "" }], name, (all) => placing(how, all)),
          ]),
      ),
    [series, how],
  );
  if (!names.length) return <p class="dim">{W.run.noCurves}</p>;
  return (
    <>
      <Axis query={query} epochs={series.has("epoch")} />
      <div class="charts">
        {drawn.map(([name, one, more]) => (
          <Chart
            key={name}
            title={name}
            series={one}
            finer={more}
            logarithmic={logarithmic}
            sync="run"
            span={how === "time" ? span : null}
          />
        ))}
      </div>
    </>
  );
}

export const Axis = ({ query, epochs }) => (
  <div class="bar">
    <label>
      {W.chart.x}
      <select
        value={query.x || "step"}
        onChange={(e) => refine({ x: e.currentTarget.value === "step" ? "" : e.currentTarget.value })}
      >
        <option value="step">{W.chart.step}</option>
        <option value="time">{W.chart.time}</option>
        {epochs && <option value="epoch">{W.chart.epoch}</option>}
      </select>
    </label>
    <label class="check">
      <input
        type="checkbox"
        checked={query.log === "1"}
        onChange={(e) => refine({ log: e.currentTarget.checked ? "1" : "" })}
      />
      {W.chart.logarithmic}
    </label>
    <span class="dim">{W.chart.zoom}</span>
  </div>
);

/** Unix seconds of the first point of all series that has a time; undefined without one. */
export function beginning(all) {
  const times = [...all.values()].map((points) => points.find((point) => point[2] !== null)?.[2]);
  const known = times.filter((time) => time !== undefined);
  return known.length ? Math.min(...known) : undefined;
}

/** Where a point is drawn: at its step, its seconds since the run's first point, or the epoch that the run reports. */
export function placing(how, all) {
  if (how === "time") {
    const start = beginning(all) ?? 0;
    return (point) => (point[2] ?? start) - start;
  }
  const epochs = all.get("epoch");
  if (how !== "epoch" || !epochs?.length) return (point) => point[0];
  return (point) => {
    let low = 0,
      high = epochs.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (epochs[middle][0] <= point[0]) low = middle;
      else high = middle - 1;
    }
    const [a, b] = [epochs[low], epochs[low + 1]];
    return b && b[0] > a[0] ? a[1] + ((point[0] - a[0]) / (b[0] - a[0])) * (b[1] - a[1]) : a[1];
  };
}

// How the nodes of a run are used: curves by node, across the same seconds as the curves of the training.
import { get } from "../../api.js";
import { Chart } from "../../chart.jsx";
import { visible } from "../../format.js";
import { own } from "../../own.js";
import { columns } from "../../series.js";
import { W } from "../../words.js";
import { beginning } from "./curves.jsx";
import { useEffect, useMemo, useState } from "preact/hooks";

const MINUTE = 60_000, // between two samples
  FIRST = ["cpu", "memory", "gpu", "gpu_memory"],
  ABOUT = ["time", "node", "device"],
  ADDED = ["gpu_energy"]; // of a node's GPUs; all other metrics are averaged

/** The answer of `GET runs/{run}/usage`, anew each minute while the run is not over; null before its nodes begin. */
export function useUsage(name, begun, over) {
  const [usage, set] = useState(null);
  useEffect(() => set(null), [name]);
  useEffect(() => {
    if (!begun) return undefined;
    const stop = new AbortController();
    const ask = () =>
      get(["runs", name, "usage"], {}, { signal: stop.signal }).then(set, (fault) => {
        if (!stop.signal.aborted) set((before) => before || { samples: [], fault });
      });
    ask();
    const timer = over ? 0 : setInterval(() => document.hidden || ask(), MINUTE);
    return () => {
      stop.abort();
      clearInterval(timer);
    };
  }, [name, begun, over]);
  return usage;
}

/** { start, span }: Unix seconds that are 0 on the axis, and the seconds of the first and last point of all curves. */
export function useTimes(series, usage) {
  return useMemo(() => {
    const points = [...(series || new Map()).values()].flatMap((all) => [all[0]?.[2], all.at(-1)?.[2]]),
      samples = usage?.samples || [],
      times = [...points, samples[0]?.time, samples.at(-1)?.time].filter(Number.isFinite),
      start = beginning(series || new Map()) ?? samples[0]?.time ?? 0;
    const [from, to] = [Math.min(...times) - start, Math.max(...times) - start];
    return { start, span: from < to ? [from, to] : null };
  }, [series, usage]);
}

/** One series per node that has the metric: GPUs of a node are averaged, and their energy is added. */
function byNode(samples, nodes, name, start) {
  const found = new Map(nodes.map((node) => [node, new Map()]));
  for (const row of samples.filter((each) => each[name])) {
    const times = found.get(row.node),
      [sum, n] = times.get(row.time) || [0, 0];
    times.set(row.time, [sum + row[name][0], n + 1]);
  }
  return nodes.flatMap((node, i) => {
    const points = [...found.get(node)].map(([time, [sum, n]]) => [time, ADDED.includes(name) ? sum : sum / n]);
    const drawn = { name: node, label: W.usage.node(i + 1), colour: i };
    return points.length ? [{ ...drawn, ...columns(points, ([time]) => time - start) }] : [];
  });
}

export function Usage({ usage, start, span, sync }) {
  const { samples } = usage,
    [more, showMore] = useState(false);
  const nodes = useMemo(() => [...new Set(samples.map((row) => row.node))].sort(), [samples]),
    names = useMemo(
      () => [...new Set(samples.flatMap(Object.keys))].filter((name) => !ABOUT.includes(name)),
      [samples],
    );
  const others = names.filter((name) => !FIRST.includes(name) && !name.endsWith("_in_all")),
    common = { samples, nodes, start, span, sync };
  return (
    <>
      <p class="dim">{W.usage.axis}</p>
      <Charts names={FIRST.filter((name) => names.includes(name))} {...common} />
      {others.length > 0 && (
        <details onToggle={(e) => showMore(e.currentTarget.open)}>
          <summary>{W.usage.more}</summary>
          {more && <Charts names={others} {...common} />}
        </details>
      )}
      <details>
        <summary>{W.usage.names}</summary>
        <ol>
          {nodes.map((node) => (
            <li key={node} class="mono">
              {visible(node)}
            </li>
          ))}
        </ol>
      </details>
    </>
  );
}

function Charts({ names, samples, nodes, start, span, sync }) {
  const drawn = useMemo(
    () => names.map((name) => [name, byNode(samples, nodes, name, start)]),
    [samples, names.join(), start],
  );
  return (
    <div class="charts">
      {drawn.map(([name, series]) => (
        <Chart
          key={name}
          title={own(W.usage.metrics, name) || name.replaceAll("_", " ")}
          series={series}
          span={span}
          sync={sync}
        />
      ))}
    </div>
  );
}

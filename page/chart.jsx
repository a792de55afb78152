// Curves: one drawing of some series, with what it says in words, as sound and as a table.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { summary } from "./series.js";
import { metric, number, tick, visible } from "./format.js";
import { announce } from "./parts.jsx";
import { hear, silence } from "./sound.js";
import { spoken } from "./spark.jsx";
import uPlot from "uplot";
import { W } from "./words.js";
import { zoomed } from "./zoom.js";

const HEIGHT = 200,
  PALETTE = 8,
  TABLE_ROWS = 200,
  SETTLED = 150; // milliseconds after the last zoom
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
export const colour = (at) => css(`--curve-${at % PALETTE}`);
const DASHES = [[], [8, 4], [2, 3], [10, 3, 2, 3]]; // the ninth series has the first colour again, and another dash

/**
 * `series`: [{ name, label, x, y }] with typed arrays. `of` is their metric, if the title is another. `finer(from, to)`
 * promises them
 * with all that there is of them between two places; it is asked once somebody has zoomed there. `span`: the least and
 * the greatest x of the drawing, if not those of the series.
 */
/**
 * @param {{ title: string, of?: string, series: any[], logarithmic?: boolean, sync?: string, span?: number[] | null,
 *   finer?: (from: number, to: number) => Promise<any[]> }} props
 */
export function Chart({ title, of = title, series, logarithmic = false, sync = "", finer, span = null }) {
  const box = useRef(null),
    plot = useRef(null),
    drawn = useRef(null),
    [width, setWidth] = useState(0),
    [zoom, setZoom] = useState(null),
    [theme, setTheme] = useState(0);
  const ends = useMemo(() => span || range(series), [series, span]),
    shown = useFiner(finer, zoom) || series,
    onKey = useZoomKeys(ends, zoom, setZoom, sync);
  useLayoutEffect(() => {
    const watch = new ResizeObserver(([entry]) => setWidth(Math.floor(entry.contentRect.width)));
    watch.observe(box.current);
    const repaint = () => setTheme((n) => n + 1);
    addEventListener("theme", repaint);
    return () => {
      watch.disconnect();
      removeEventListener("theme", repaint);
    };
  }, []);
  const shape = `${width} ${theme} ${logarithmic} ${series.map((one) => one.name).join("\n")}`;
  useEffect(() => {
    if (!width || !ends) return undefined;
    const onScale = (u, key) => {
      const { min, max } = u.scales[key];
      if (key === "x" && drawn.current && (min !== drawn.current[0] || max !== drawn.current[1]))
        setZoom(min <= ends[0] && max >= ends[1] ? null : [min, max]);
    };
    drawn.current = null;
    const made = new uPlot(options({ of, series, width, logarithmic, onScale, sync }), together(shown), box.current);
    drawn.current = zoom || ends;
    plot.current = made;
    made.over.addEventListener("dblclick", () => setZoom(null));
    return () => {
      made.destroy();
      plot.current = null;
    };
  }, [shape, Boolean(ends)]);
  useEffect(() => {
    if (!plot.current || !ends) return;
    const [from, to] = zoom || ends;
    drawn.current = [from, to];
    plot.current.setData(together(shown), false);
    plot.current.batch(() => {
      plot.current.setScale("x", { min: from, max: to });
    });
  }, [shown, zoom, ends, width, theme]);
  return (
    <figure class="chart">
      <figcaption>
        <h3>{visible(title)}</h3>
      </figcaption>
      <div
        class="plot"
        ref={box}
        role="img"
        tabindex={0}
        aria-label={W.chart.keys(visible(title))}
        onKeyDown={onKey}
        data-series={series.length}
        data-points={shown.reduce((sum, one) => sum + one.x.length, 0)}
      />
      {!ends && <p class="dim">{W.chart.none}</p>}
      <Legend title={title} of={of} series={series} />
    </figure>
  );
}

/** All points of the part that is shown, once somebody has zoomed; null before, and where the series are complete. */
function useFiner(finer, zoom) {
  const [fine, setFine] = useState(null);
  useEffect(() => {
    if (!zoom || !finer) {
      setFine(null);
      return undefined;
    }
    let over = false;
    const show = (found) => !over && found && setFine(found);
    const timer = setTimeout(() => finer(...zoom).then(show, () => {}), SETTLED);
    return () => {
      over = true;
      clearTimeout(timer);
    };
  }, [zoom, Boolean(finer)]);
  return zoom && fine;
}

/** What a chart does with a key that zooms; charts with the same `sync` zoom together. */
function useZoomKeys(ends, zoom, setZoom, sync) {
  useEffect(() => {
    if (!sync) return undefined;
    const follow = (/** @type {any} */ { detail }) => detail.sync === sync && setZoom(detail.zoom);
    addEventListener("zoomed", follow);
    return () => removeEventListener("zoomed", follow);
  }, [sync]);
  return (event) => {
    const part = ends && !event.ctrlKey && !event.metaKey && !event.altKey ? zoomed(event.key, ends, zoom) : undefined;
    if (part === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    setZoom(part);
    if (sync) dispatchEvent(new CustomEvent("zoomed", { detail: { sync, zoom: part } }));
    announce(part ? W.chart.part(...part.map(number)) : W.chart.whole);
  };
}

/** uPlot's data: one row of x, shared by all, then a row of y for each series. uPlot itself draws across what lacks. */
const together = (series) => uPlot.join(series.map(({ x, y }) => [x, y]));

function range(series) {
  let from = Infinity,
    to = -Infinity;
  for (const { x } of series)
    if (x.length) {
      from = Math.min(from, x[0]);
      to = Math.max(to, x.at(-1));
    }
  return from > to ? null : from === to ? [from - 0.5, to + 0.5] : [from, to];
}

/** @returns {import("uplot").Options} */
function options({ of, series, width, logarithmic, onScale, sync }) {
  const axis = {
    stroke: css("--dim"),
    grid: { stroke: css("--line"), width: 1 },
    ticks: { stroke: css("--line"), width: 1 },
    font: "12px system-ui, sans-serif",
  };
  const positive = logarithmic && series.every((one) => one.y.every((value) => value > 0));
  return {
    width,
    height: HEIGHT,
    legend: { show: false },
    padding: [8, 8, 0, 0],
    cursor: {
      drag: { x: true, y: false, setScale: true },
      points: { size: 6 },
      ...(sync ? { sync: { key: sync, setSeries: false } } : {}),
    },
    scales: { x: { time: false }, y: { distr: positive ? 3 : 1 } },
    axes: [
      { ...axis, size: 30, values: (_, ticks) => ticks.map(number) },
      { ...axis, size: 58, values: (_, ticks) => ticks.map((at) => (at === null ? "" : tick(of, at))) },
    ],
    series: [
      {},
      ...series.map((one, i) => ({
        label: one.name,
        stroke: colour(one.colour ?? i),
        dash: DASHES[Math.floor((one.colour ?? i) / PALETTE) % DASHES.length],
        width: 1.5,
        spanGaps: true,
        points: { show: one.x.length < 2 },
      })),
    ],
    hooks: { setScale: [onScale] },
  };
}

function Legend({ title, of, series }) {
  const [heard, setHeard] = useState(null),
    [table, showTable] = useState(false);
  const summaries = useMemo(
    () => series.map((one) => ({ one, found: summary(one) })).filter(({ found }) => found),
    [series],
  );
  const play = async (one, found) => {
    if (heard === one.name) {
      silence();
      setHeard(null);
      return;
    }
    announce(spoken(one.label || title, found, of));
    setHeard(one.name);
    await hear(one);
    setHeard(null);
  };
  return (
    <>
      <ul class="legend">
        {summaries.map(({ one, found }, i) => (
          <li key={one.name}>
            <svg class="swatch" viewBox="0 0 14 8" aria-hidden="true">
              <line
                class={`curve-${(one.colour ?? i) % PALETTE}`}
                x1="0"
                x2="14"
                y1="4"
                y2="4"
                stroke-dasharray={DASHES[Math.floor((one.colour ?? i) / PALETTE) % DASHES.length].join(" ")}
              />
            </svg>
            <span class="sr">{spoken(one.label || title, found, of)}</span>
            <span aria-hidden="true">
              {one.label ? <>{visible(one.label)} </> : ""}
              <b>{metric(of, found.last)}</b>{" "}
              <span class="dim">
                {metric(of, found.least)} … {metric(of, found.greatest)}
              </span>
            </span>
            <button
              type="button"
              class="quiet small hear"
              onClick={() => play(one, found)}
              aria-label={heard === one.name ? W.chart.stop : W.chart.hear(visible(one.label || title))}
            >
              {heard === one.name ? "■" : "♪"}
            </button>
          </li>
        ))}
      </ul>
      {summaries.length > 0 && (
        <details class="numbers" onToggle={(e) => showTable(e.currentTarget.open)}>
          <summary>{W.chart.table(visible(title))}</summary>
          {table && <Numbers of={of} series={summaries.map(({ one }) => one)} />}
        </details>
      )}
    </>
  );
}

function Numbers({ of, series }) {
  return (
    <div class="scroll" tabindex={0} role="region" aria-label={W.chart.table("")}>
      {series.map((one) => {
        const skip = Math.max(1, Math.ceil(one.x.length / TABLE_ROWS));
        const rows = Array.from(one.x.keys()).filter((i) => i % skip === 0 || i === one.x.length - 1);
        return (
          <table>
            <caption>{visible(one.label || one.name)}</caption>
            <thead>
              <tr>
                <th scope="col">{W.chart.x}</th>
                <th scope="col">{visible(one.label || one.name)}</th>
              </tr>
            </thead>
            <tbody>
              {rows.map((i) => (
                <tr key={i}>
                  <td>{number(one.x[i])}</td>
                  <td>{metric(of, one.y[i])}</td>
                </tr>
              ))}
            </tbody>
          </table>
        );
      })}
    </div>
  );
}

// Any runs side by side: what differs first, then the curves over one another, and for many their coordinates.
import { get } from "../api.js";
import { Chart } from "../chart.jsx";
import { columns } from "../series.js";
import { finer } from "../finer.js";
import { duration, metric, number, visible } from "../format.js";
import { useMemo } from "preact/hooks";
import { useLive } from "../live.js";
import { Drawing, State, Trouble } from "../parts.jsx";
import { ordered } from "../metric.js";
import { mapOf, own } from "../own.js";
import { ended, runSeconds } from "../record.js";
import { refine, to } from "../route.js";
import { W } from "../words.js";
import { Axis, placing } from "./run/curves.jsx";

const PLAIN = [
  "state",
  "experiment",
  "route",
  "drop",
  "generation",
  "fingerprint",
  "cluster",
  "nodes",
  "owner",
  "code",
  "environment",
  "retry_of",
];

export function Compare({ route }) {
  const names = [...new Set((route.query.runs || "").split(",").filter(Boolean))];
  const { value, error } = useLive(
    (signal) =>
      names.length ? get(["curves"], { runs: names.join(","), records: "true" }, { signal }) : Promise.resolve(NOTHING),
    [names.join()],
    { still: (seen) => seen.records.every((run) => ended(run) && run.archived_at) },
  );
  const records = value?.records || [];
  const add = (event) => {
    event.preventDefault();
    const field = event.target.elements.run;
    refine({ runs: [...names, field.value.trim()].join(",") });
    field.value = "";
  };
  return (
    <section>
      <h1 tabindex={-1}>{W.compare.title}</h1>
      <form class="bar" onSubmit={add}>
        <label>
          {W.compare.addHelp}
          <input name="run" required />
        </label>
        <button type="submit">{W.compare.add}</button>
      </form>
      {names.length === 0 && <p class="notice">{W.compare.empty}</p>}
      {error && value && (
        <p class="notice bad" role="alert">
          {visible(error.message)}
        </p>
      )}
      {names.length > 0 && <Trouble error={error} value={value} />}
      {records.length > 0 && (
        <>
          <Differences records={records} names={names} />
          <Over value={value} records={records} query={route.query} />
          {records.length > 2 && <Parallel records={records} />}
        </>
      )}
    </section>
  );
}

const NOTHING = { runs: {}, records: [] };

/**
 * Everything that is recorded of runs as rows: [group, name, value of each run, as a person reads it].
 * @returns {any[]} [string, string, string[]] each
 */
function rows(records) {
  const keyed = (group, of, write = (_, value) => shown(value)) =>
    [...new Set(records.flatMap((run) => Object.keys(of(run) || {})))]
      .sort()
      .map((name) => [
        group,
        name,
        records.map((run) => (own(of(run), name) === undefined ? "" : write(name, own(of(run), name)))),
      ]);
  return [
    ...keyed(W.run.parameters, (run) => run.parameters),
    ...keyed(W.run.fields.tags, (run) => run.tags),
    ...PLAIN.map((name) => [
      "",
      W.run.fields[name] || W.drops[name] || W.runs[name] || name,
      records.map((run) => shown(run[name])),
    ]),
    ["", W.runs.took, records.map((run) => (runSeconds(run) === null ? "" : duration(runSeconds(run))))],
    ...keyed(W.runs.ofModel, (run) => run.metrics.of_model, metric),
  ];
}

const shown = (value) =>
  value === undefined || value === null ? "" : typeof value === "number" ? number(value) : String(value);

/** A hash by its beginning; the whole of it as its title. */
const short = (value) =>
  /^[0-9a-f]{32,}$/.test(value) ? (
    <span class="mono" title={value}>
      {value.slice(0, 12)}…
    </span>
  ) : (
    visible(value)
  );

function Differences({ records, names }) {
  const all = rows(records),
    differ = all.filter(([, , values]) => new Set(values).size > 1),
    same = all.filter(([, , values]) => new Set(values).size === 1 && values[0] !== "");
  const line = ([group, name, values], i) => (
    <tr key={i}>
      <th scope="row" title={visible(name)}>
        {visible(name)}
        <small>{group}</small>
      </th>
      {values.map((value, j) => (
        <td key={j} class="cell">
          {short(value)}
        </td>
      ))}
    </tr>
  );
  const head = (
    <thead>
      <tr>
        <th scope="col">
          <span class="sr">{W.compare.differs}</span>
        </th>
        {records.map((run, i) => (
          <th scope="col" key={run.run}>
            <svg class="swatch" viewBox="0 0 14 8" aria-hidden="true">
              <line class={`curve-${i % 8}`} x1="0" x2="14" y1="4" y2="4" />
            </svg>{" "}
            <a href={to("run", [run.run])}>{visible(run.run)}</a> <State state={run.state} />{" "}
            <button
              type="button"
              class="quiet small"
              aria-label={W.compare.remove(visible(run.run))}
              onClick={() => refine({ runs: names.filter((name) => name !== run.run).join(",") })}
            >
              ×
            </button>
          </th>
        ))}
      </tr>
    </thead>
  );
  return (
    <section class="part">
      <h2>{W.compare.differs}</h2>
      {differ.length === 0 && <p class="dim">{W.compare.noDifference}</p>}
      <div class="scroll" tabindex={0} role="region" aria-label={W.compare.differs}>
        <table class="compare">
          {head}
          <tbody>{differ.map(line)}</tbody>
        </table>
      </div>
      <details>
        <summary>{W.compare.same(same.length)}</summary>
        <div class="scroll" tabindex={0} role="region" aria-label={W.compare.same(same.length)}>
          <table>
            <tbody>
              {same.map(([group, name, [value]], i) => (
                <tr key={i}>
                  <th scope="row">
                    {visible(name)}
                    <small>{group}</small>
                  </th>
                  <td class="cell">{short(value)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </details>
    </section>
  );
}

function Over({ value, records, query }) {
  const how = query.x || "step",
    metrics = useMemo(
      () =>
        [...new Set(records.flatMap((run) => Object.keys(own(value.runs, run.run) || {})))].filter(
          (name) => name !== "epoch",
        ),
      [value],
    );
  const order = ordered(metrics);
  const drawn = useMemo(
    () =>
      order.map((name) => [
        name,
        records.flatMap((run, i) => {
          const all = mapOf(own(value.runs, run.run));
          return all.has(name)
            ? [{ name: run.run, label: run.run, colour: i, ...columns(all.get(name), placing(how, all)) }]
            : [];
        }),
        finer(
          records.map((run, i) => ({
            run: run.run,
            all: mapOf(own(value.runs, run.run)),
            name: run.run,
            label: run.run,
            colour: i,
          })),
          name,
          (all) => placing(how, all),
        ),
      ]),
    [value, how],
  );
  return (
    <section class="part">
      <h2>{W.compare.curves}</h2>
      <Axis query={query} epochs={records.some((run) => own(own(value.runs, run.run), "epoch"))} />
      <div class="charts">
        {drawn.map(([name, series, more]) => (
          <Chart key={name} title={name} series={series} finer={more} logarithmic={query.log === "1"} sync="compare" />
        ))}
      </div>
    </section>
  );
}

/** A line for each run across an axis for each value that differs; as many axes as there is room for their names. */
export function Parallel({ records }) {
  const axes = useMemo(() => axesOf(records), [records]);
  if (axes.length < 2) return null;
  return (
    <section class="part">
      <h2>{W.compare.parallel}</h2>
      <Drawing
        kind="parallel"
        height={260}
        label={`${W.compare.parallel}: ${axes.map((axis) => visible(axis.name)).join(", ")}`}
        draw={(width) =>
          parallel(records, fitting(axes, Math.min(MOST_AXES, Math.max(2, Math.floor(width / AXIS)))), width)
        }
      />
    </section>
  );
}

function parallel(records, axes, width) {
  const across = (i) => AXIS / 2 + (i / (axes.length - 1)) * (width - AXIS),
    up = (axis, value) =>
      214 - ((axis.at(value) - axis.at(axis.least)) / (axis.at(axis.greatest) - axis.at(axis.least))) * 184;
  const path = (i) =>
    axes
      .map((axis, j) => [axis, j])
      .filter(([axis]) => Number.isFinite(axis.values[i]))
      .map(([axis, j], n) => `${n ? "L" : "M"}${across(j)},${up(axis, axis.values[i])}`)
      .join("");
  return (
    <>
      {axes.map((axis, i) => (
        <g key={axis.name}>
          <line x1={across(i)} x2={across(i)} y1="30" y2="214" />
          <text x={across(i)} y="250" text-anchor="middle">
            {visible(axis.name)}
          </text>
          <text x={across(i)} y="20" text-anchor="middle">
            {axis.texts ? visible(axis.texts.at(-1)) : metric(axis.name, axis.greatest)}
          </text>
          <text x={across(i)} y="230" text-anchor="middle">
            {axis.texts ? visible(axis.texts[0]) : metric(axis.name, axis.least)}
          </text>
          {axis.texts?.slice(1, -1).map((text, j) => (
            <text key={text} x={across(i) + 6} y={up(axis, j + 1) + 4}>
              {visible(text)}
            </text>
          ))}
        </g>
      ))}
      {records.map((run, i) => (
        <path key={run.run} class={`curve-${i % 8}`} d={path(i)}>
          <title>{visible(run.run)}</title>
        </path>
      ))}
    </>
  );
}

const MOST_AXES = 10,
  AXIS = 110, // pixels across
  MOST_TEXTS = 12, // of one axis
  WIDE = 100; // from the least to the greatest: an axis of so many times more is logarithmic

function axesOf(records) {
  const of = (run) =>
    new Map(
      /** @type {[string, unknown][]} */ ([
        ...mapOf(run.parameters),
        ["nodes", run.nodes],
        ...(runSeconds(run) === null ? [] : [[W.runs.took, runSeconds(run)]]),
        ...mapOf(run.metrics.of_model),
      ]),
    );
  const all = records.map(of),
    names = [...new Set(all.flatMap((values) => [...values.keys()]))];
  return names
    .map((name) => ({ name, ...scale(all.map((one) => one.get(name))) }))
    .filter(({ least, greatest, texts }) => greatest > least && !(texts?.length > MOST_TEXTS));
}

/** As many axes; the last, which is a metric, is always there. */
const fitting = (axes, most) => (axes.length > most ? [...axes.slice(0, most - 1), axes.at(-1)] : axes);

/** Where values lie on an axis: numbers by their size, texts beside one another in their order. */
function scale(said) {
  const known = said.filter((value) => value !== undefined && value !== null),
    numbers = known.every((value) => typeof value === "number");
  const texts = numbers ? null : [...new Set(known.map(String))].sort();
  const values = said.map((value) =>
    value === undefined || value === null ? NaN : texts ? texts.indexOf(String(value)) : value,
  );
  const finite = values.filter(Number.isFinite),
    least = Math.min(...finite),
    greatest = Math.max(...finite);
  return { values, texts, least, greatest, at: least > 0 && greatest / least >= WIDE ? Math.log : Number };
}

// The runs: live, filtered by the API, sorted here; those that are chosen are compared.
import { get } from "../api.js";
import { between, count, duration, metric, money, visible } from "../format.js";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { useLive } from "../live.js";
import { ordered } from "../metric.js";
import { mapOf, own } from "../own.js";
import { announce, Command, State, Trouble, When } from "../parts.jsx";
import { go, refine, to } from "../route.js";
import { Rows } from "../rows.js";
import { Spark } from "../spark.jsx";
import { useRows } from "../virtual.js";
import { W } from "../words.js";

const ROW = 44,
  CURVES = 25,
  CURVE_POINTS = 40,
  NEAR = 50, // pixels; runs and points of one request; rows before the end of the list
  ENDING = 8; // letters at the end of a name, which tell a sweep's trials apart: they stay in sight
const STATES = ["received", "submitted", "queued", "running", "completed", "failed", "canceled", "broken"];
const ASKED = ["state", "experiment", "owner", "tag"]; // filters of the API; the others are for what is loaded
const shapes = new Map(); // run -> Map of series, of this session
// Whoever goes into a run and back finds the list as it was: its rows, and where it stood.
let latest = { filter: "", rows: null },
  entered = null; // { address, top, run }
const VALUES = {
  run: (r) => r.run,
  state: (r) => STATES.indexOf(r.state),
  made: (r) => r.created_at,
  took: rowSeconds,
  best: (r) => best(r)?.[1],
  nodes: (r) => r.nodes,
  cost: (r) => r.cost,
  used: (r) => r.used,
};

function rowSeconds(row) {
  return row.started_at ? between(row.started_at, row.ended_at ?? undefined) : null;
}

function best(row) {
  return row.headline
    ? [row.headline, own(row.of_model, row.headline) ?? own(row.best, row.headline), own(row.best, row.headline)]
    : null;
}

export function Runs({ route }) {
  const { query } = route,
    asked = Object.fromEntries(ASKED.map((name) => [name, query[name]])),
    filter = JSON.stringify(asked);
  const [, drawn] = useState(0),
    ticks = useRef(0),
    seenRuns = useRef([]),
    redraw = () => drawn((n) => n + 1);
  const rows = useMemo(() => {
    if (latest.filter !== filter) latest = { filter, rows: new Rows(asked) };
    return latest.rows.open(redraw);
  }, [filter]);
  useEffect(() => () => rows.stop(), [rows]);
  const { value, error } = useLive(
    async (signal) => {
      // A refresh is one request: now and then the curves of what trains take the turn of the list.
      if (
        rows.mark &&
        ticks.current++ % 4 === 3 &&
        (await sketch(
          seenRuns.current.filter((run) => run.state === "running"),
          true,
        ))
      ) {
        redraw();
        return rows.list;
      }
      return rows.refresh(signal);
    },
    [filter],
  );
  const { list } = rows,
    all = Boolean(query.q || query.parameter || (query.sort && query.sort !== "-made"));
  useEffect(() => {
    if (all && value) rows.want();
  }, [all, rows, Boolean(value)]);
  const shown = useMemo(
    () => sorted(list.filter(matching(query)), query.sort),
    [list, query.q, query.parameter, query.sort],
  );
  useChanges(list);
  return (
    <section class="runs">
      <h1 tabindex="-1">{W.runs.title}</h1>
      <Filters query={query} runs={list} />
      {error && value && (
        <p class="notice bad" role="alert">
          {visible(error.message)}
        </p>
      )}
      <Trouble error={error} value={value} />
      {value && list.length === 0 && <Empty filtered={Object.values(query).some(Boolean)} />}
      {list.length > 0 && (
        <Table
          runs={shown}
          query={query}
          rows={rows}
          away={Boolean(error)}
          seen={async (now) => {
            seenRuns.current = now;
            if (await sketch(now)) redraw();
          }}
        />
      )}
    </section>
  );
}

const Empty = ({ filtered }) => (
  <div class="notice">
    {filtered ? (
      W.runs.emptyFilter
    ) : (
      <>
        <p>{W.runs.empty}</p>
        <Command text={W.runs.emptyCommand} />
      </>
    )}
  </div>
);

function matching({ q = "", parameter = "" }) {
  const [, name, operator, wanted] = parameter.match(/^\s*([^=<>]+?)\s*([=<>])\s*(.*?)\s*$/) || [];
  return (run) => {
    if (q && ![run.run, run.drop, run.experiment].some((text) => text.toLowerCase().includes(q.toLowerCase())))
      return false;
    if (!name) return true;
    const value = [run.parameters, run.of_model, run.best, run.tags]
      .map((all) => own(all, name))
      .find((it) => it !== undefined);
    if (value === undefined) return false;
    return operator === "="
      ? String(value) === wanted
      : operator === "<"
        ? Number(value) < Number(wanted)
        : Number(value) > Number(wanted);
  };
}

function sorted(runs, sort = "-made") {
  const down = sort.startsWith("-"),
    of = VALUES[sort.replace("-", "")] || VALUES.made;
  const keyed = runs
    .map((run) => [of(run), run])
    .sort(([a], [b]) => {
      if (a === b) return 0;
      if (a === null || a === undefined) return 1; // what is unknown comes last, whichever way
      if (b === null || b === undefined) return -1;
      return (a < b ? -1 : 1) * (down ? -1 : 1);
    });
  return keyed.map(([, run]) => run);
}

/** Fetch the curves of these runs that are not there yet (or anew, of those that train): one request. */
async function sketch(runs, anew = false) {
  const wanted = runs
    .filter((run) => anew || !shapes.has(run.run))
    .slice(0, CURVES)
    .map((run) => run.run);
  if (!wanted.length) return false;
  for (const name of wanted) if (!shapes.has(name)) shapes.set(name, new Map()); // asked for, once
  try {
    const { runs: found } = await get(["curves"], { runs: wanted.join(","), points: CURVE_POINTS });
    for (const [name, series] of Object.entries(found)) shapes.set(name, mapOf(series));
    return true;
  } catch {
    return false;
  }
}

function useChanges(runs) {
  const before = useRef(null);
  useEffect(() => {
    const now = new Map(runs.map((run) => [run.run, run.state]));
    const changed =
      before.current && runs.filter((run) => before.current.has(run.run) && before.current.get(run.run) !== run.state);
    if (changed?.length)
      announce(
        changed
          .slice(0, 3)
          .map((run) => W.runs.changed(visible(run.run), W.states[run.state]))
          .join(". "),
      );
    if (runs.length) before.current = now;
  }, [runs]);
}

function Filters({ query, runs }) {
  const known = (of) => [...new Set(runs.map(of).filter(Boolean))].sort(),
    [experiments, owners] = useMemo(() => [known((run) => run.experiment), known((run) => run.owner)], [runs]);
  const field = (name, label, hint, list) => (
    <label>
      {label}
      <input
        type={name === "q" ? "search" : "text"}
        value={query[name] || ""}
        placeholder={hint || ""}
        list={list && `known-${name}`}
        onChange={(e) => refine({ [name]: e.target.value })}
        onInput={name === "q" ? (e) => refine({ q: e.target.value }) : undefined}
      />
      {list && (
        <datalist id={`known-${name}`}>
          {list.map((value) => (
            <option key={value} value={value} />
          ))}
        </datalist>
      )}
    </label>
  );
  return (
    <form class="filters" role="search" onSubmit={(e) => e.preventDefault()}>
      {field("q", W.runs.filter)}
      <label>
        {W.runs.state}
        <select value={query.state || ""} onChange={(e) => refine({ state: e.target.value })}>
          <option value="">{W.all}</option>
          {STATES.map((state) => (
            <option key={state} value={state}>
              {W.states[state]}
            </option>
          ))}
        </select>
      </label>
      {field("experiment", W.runs.experiment, "", experiments)}
      {field("owner", W.runs.owner, "", owners)}
      {field("tag", W.runs.tag, W.runs.tagHint)}
      {field("parameter", W.runs.parameter, W.runs.parameterHint)}
    </form>
  );
}

function Table({ runs, query, rows, away, seen }) {
  const { box, from, to: until, above, below } = useRows(runs.length, ROW);
  const chosen = new Set((query.chosen || "").split(",").filter(Boolean)),
    priced = useMemo(() => runs.some((run) => run.cost !== null), [runs]),
    measured = useMemo(() => runs.some((run) => typeof run.used === "number"), [runs]),
    labels = useMemo(() => [...new Set(runs.flatMap((run) => Object.keys(run.listed || {})))], [runs]);
  const slice = runs.slice(from, until),
    names = slice.map((run) => run.run).join();
  rows.sees(slice);
  useEffect(() => {
    const timer = setTimeout(() => seen(slice), 150);
    return () => clearTimeout(timer);
  }, [names]);
  useEffect(() => {
    if (from > 0) rows.want({ further: until > runs.length - NEAR });
  }, [from > 0, until > runs.length - NEAR, rows, away]);
  useLayoutEffect(() => {
    box.current.scrollTop = entered?.address === location.hash ? entered.top : 0;
  }, [query.sort, query.q, query.parameter]);
  useEffect(() => {
    const came = entered?.address === location.hash && document.activeElement.matches("body, main h1"),
      row = came && box.current.querySelector(`[data-row="${CSS.escape(entered.run)}"] a.row`);
    if (row) {
      row.focus({ preventScroll: true });
      entered = null;
    }
  }, [names]);
  const enter = ({ target }) => {
    if (target.closest("a.row"))
      entered = {
        address: location.hash,
        top: box.current.scrollTop,
        run: target.closest("[data-row]").dataset.row,
      };
  };
  const choose = (name) => {
    if (!chosen.delete(name)) chosen.add(name);
    refine({ chosen: [...chosen].join(",") });
  };
  useEffect(() => {
    const pick = () => {
      const run = document.activeElement.closest("[data-row]")?.dataset.row;
      if (run) choose(run);
    };
    const compare = () => chosen.size && go(to("compare", [], { runs: [...chosen].join(",") }));
    addEventListener("key-x", pick);
    addEventListener("key-c", compare);
    return () => {
      removeEventListener("key-x", pick);
      removeEventListener("key-c", compare);
    };
  }, [query.chosen]);
  return (
    <>
      <div class="bar">
        <span class="dim" role="status">
          {W.runs.shown(count(runs.length), Boolean(rows.token))}
        </span>
        {chosen.size > 0 && (
          <>
            <a class="button primary" href={to("compare", [], { runs: [...chosen].join(",") })}>
              {W.runs.compare(chosen.size)}
            </a>
            <button type="button" class="quiet" onClick={() => refine({ chosen: "" })}>
              {W.runs.clear}
            </button>
          </>
        )}
      </div>
      <div class="scroll tall" ref={box} tabindex="0" role="region" aria-label={W.runs.title} onClick={enter}>
        <table class="list" aria-rowcount={runs.length + 1}>
          <thead>
            <tr>
              <th scope="col" class="pick">
                <span class="sr">{W.runs.chosen}</span>
              </th>
              <Head name="run" label={W.runs.run} query={query} />
              <Head name="state" label={W.runs.state} query={query} />
              <Head figure name="best" label={W.runs.metric} query={query} />
              <th scope="col" class="wide">
                {W.runs.curve}
              </th>
              <th scope="col" class="wide">
                {W.runs.experiment}
              </th>
              <Head figure name="nodes" label={W.runs.nodes} query={query} wide />
              {priced && <Head figure name="cost" label={W.runs.cost} query={query} wide />}
              {measured && <Head figure name="used" label={W.runs.used} query={query} wide />}
              {labels.map((label) => (
                <th scope="col" class="wide" key={label}>
                  {label}
                </th>
              ))}
              <Head figure name="took" label={W.runs.took} query={query} wide />
              <Head figure name="made" label={W.runs.made} query={query} />
            </tr>
          </thead>
          <tbody>
            <tr aria-hidden="true" class="space" style={{ height: `${above}px` }} />
            {slice.map((run, i) => (
              <Row
                key={run.run}
                run={run}
                at={from + i + 2}
                chosen={chosen.has(run.run)}
                choose={choose}
                priced={priced}
                measured={measured}
                labels={labels}
              />
            ))}
            <tr aria-hidden="true" class="space" style={{ height: `${below}px` }} />
          </tbody>
        </table>
      </div>
    </>
  );
}

function Head({ name, label, query, wide, figure }) {
  const sort = query.sort || "-made",
    mine = sort.replace("-", "") === name,
    down = sort.startsWith("-");
  const turn = () => {
    refine({ sort: mine ? `${down ? "" : "-"}${name}` : `-${name}` });
    announce(W.runs.sorted(label, mine ? !down : true));
  };
  return (
    <th
      scope="col"
      class={`${wide ? "wide" : ""} ${figure ? "number" : ""}`}
      aria-sort={mine ? (down ? "descending" : "ascending") : undefined}
    >
      <button type="button" onClick={turn}>
        {label}
        <span aria-hidden="true">{mine ? (down ? " ↓" : " ↑") : ""}</span>
      </button>
    </th>
  );
}

function Row({ run, at, chosen, choose, priced, measured, labels }) {
  const series = shapes.get(run.run) || new Map(),
    names = [...series.keys()].filter((name) => name !== "epoch"),
    drawn = names.includes(run.headline) ? run.headline : ordered(names)[0],
    found = best(run),
    seconds = rowSeconds(run);
  return (
    <tr aria-rowindex={at} data-row={run.run} class={chosen ? "chosen" : ""}>
      <td class="pick">
        <input
          type="checkbox"
          checked={chosen}
          onChange={() => choose(run.run)}
          aria-label={W.runs.choose(visible(run.run))}
        />
      </td>
      <th scope="row">
        <a class="row name" href={to("run", [run.run])} aria-label={visible(run.run)}>
          <span>{visible(run.run.slice(0, -ENDING))}</span>
          <span>{visible(run.run.slice(-ENDING))}</span>
        </a>
        <small>{visible(run.drop || run.owner || "")}</small>
      </th>
      <td>
        <State state={run.state} />
      </td>
      <td class="number">
        {found ? (
          <>
            {metric(found[0], found[1])}
            <small>
              {visible(found[0])}
              {found[2] !== found[1] && `, ${W.runs.seen(metric(found[0], found[2]), run.best_step)}`}
            </small>
          </>
        ) : (
          W.nothing
        )}
      </td>
      <td class="wide">
        <Spark name={drawn} points={series.get(drawn)} />
      </td>
      <td class="wide">{visible(run.experiment)}</td>
      <td class="wide number">{run.nodes || W.nothing}</td>
      {priced && <td class="wide number">{money(run.cost)}</td>}
      {measured && (
        <td class="wide number">{typeof run.used === "number" ? `${Math.round(run.used)} %` : W.nothing}</td>
      )}
      {labels.map((label) => (
        <td class="wide" key={label}>
          {visible(own(run.listed, label) ?? "")}
        </td>
      ))}
      <td class="wide number">{seconds === null ? W.nothing : duration(seconds)}</td>
      <td class="number">
        <When at={run.created_at} />
      </td>
    </tr>
  );
}

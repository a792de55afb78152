// The runs: live, filtered by the API, sorted here; those that are chosen are compared.
import { get } from "../api.js";
import { between, count, duration, inZone, metric, money, share, visible } from "../format.js";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { useLive } from "../live.js";
import { ordered } from "../metric.js";
import { mapOf, own } from "../own.js";
import { announce, Command, State, Trouble, When } from "../parts.jsx";
import { go, refine, to } from "../route.js";
import { Rows } from "../rows.js";
import { chosenColumns, differing, grouped, STANDARD, STATES, toggled, unfolded } from "../run_list.js";
import { Spark } from "../spark.jsx";
import { useRows } from "../virtual.js";
import { Columns, Filters, SavedViews } from "./run_filters.jsx";
import { W } from "../words.js";

const ROW = 44,
  CURVES = 25,
  CURVE_POINTS = 40,
  NEAR = 50, // pixels; runs and points of one request; rows before the end of the list
  ENDING = 8; // letters at the end of a name, which tell a sweep's trials apart: they stay in sight
const ASKED = ["state", "experiment", "owner", "tag", "where"]; // filters of the API; names are found in what is loaded
const shapes = new Map(); // run -> Map of series, of this session
// Whoever goes into a run and back finds the list as it was: its rows, and where it stood.
let latest = { filter: "", rows: null },
  left = { address: "", top: 0 },
  unfoldedSweeps = new Set(),
  foldedGroups = { by: "", names: new Set() };
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
    all = Boolean(query.q || query.group || (query.sort && query.sort !== "-made"));
  useEffect(() => {
    if (all && value) rows.want();
  }, [all, rows, Boolean(value)]);
  const [open, setOpen] = useState(unfoldedSweeps),
    folded = foldedGroups.by === query.group ? foldedGroups.names : new Set(),
    fold = (names) => {
      foldedGroups = { by: query.group, names };
      redraw();
    },
    shown = useMemo(
      () => unfolded(sorted(list.filter(matching(query)), query.sort), open),
      [list, query.q, query.sort, open],
    );
  useChanges(list);
  return (
    <section class="runs">
      <h1 tabindex={-1}>{W.runs.title}</h1>
      <Filters query={query} runs={list} />
      {error && value && (
        <p class="notice bad" role="alert">
          {visible(error.message)}
        </p>
      )}
      <Trouble error={error} value={value} />
      {value && list.length === 0 && <Empty filtered={ASKED.some((name) => query[name]) || Boolean(query.q)} />}
      {list.length > 0 && (
        <Table
          runs={shown}
          items={grouped(shown, query.group, folded)}
          folded={folded}
          fold={fold}
          query={query}
          rows={rows}
          away={Boolean(error)}
          open={open}
          unfold={(name) => setOpen((unfoldedSweeps = toggled(open, name)))}
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

/** @param {{ q?: string }} query */
function matching({ q = "" }) {
  const wanted = q.toLowerCase();
  return (run) => [run.run, run.drop, run.experiment].some((text) => text.toLowerCase().includes(wanted));
}

/**
 * @param {import("../../schemas/answers.d.ts").RunRow[]} runs
 * @param {string} sort a column, with - in front for the greatest first
 */
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

function Table({ runs, items, folded, fold, query, rows, away, open, unfold, seen }) {
  const { box, from, to: until, above, below } = useRows(items.length, ROW);
  const chosen = new Set((query.chosen || "").split(",").filter(Boolean)),
    priced = useMemo(() => runs.some((run) => run.cost !== null), [runs]),
    measured = useMemo(() => runs.some((run) => typeof run.used === "number"), [runs]),
    labels = useMemo(() => [...new Set(runs.flatMap((run) => Object.keys(run.listed || {})))], [runs]),
    differ = useMemo(() => differing(runs), [runs]),
    further = [...(priced ? ["cost"] : []), ...(measured ? ["used"] : []), ...labels, ...differ],
    columns = chosenColumns(query.columns, further),
    wide = [...STANDARD, ...further].filter((name) => columns.has(name)).length,
    has = (name) => columns.has(name);
  const rowsInSight = items.slice(from, until),
    slice = rowsInSight.filter((item) => item.group === undefined),
    names = slice.map((run) => run.run).join();
  rows.sees(slice);
  useEffect(() => {
    const timer = setTimeout(() => seen(slice), 150);
    return () => clearTimeout(timer);
  }, [names]);
  useEffect(() => {
    if (from > 0) rows.want({ further: until > items.length - NEAR });
  }, [from > 0, until > items.length - NEAR, rows, away]);
  useLayoutEffect(() => {
    box.current.scrollTop = left.address === location.hash ? left.top : 0;
    left = { address: "", top: 0 };
  }, [query.sort, query.q]);
  const address = useRef("");
  address.current = location.hash;
  useLayoutEffect(
    () => () => {
      left = { address: address.current, top: box.current.scrollTop };
    },
    [],
  );
  const choose = (name) => {
    if (!chosen.delete(name)) chosen.add(name);
    refine({ chosen: [...chosen].join(",") });
  };
  useEffect(() => {
    const pick = () => {
      const run = document.activeElement.closest("[data-row]")?.getAttribute("data-row");
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
        {query.group && <FoldAll items={items} folded={folded} fold={fold} />}
        <Columns columns={columns} all={[...new Set([...STANDARD, ...further])]} />
        <SavedViews />
      </div>
      <div class="scroll tall" ref={box} tabindex={0} role="region" aria-label={W.runs.title}>
        <table class="list" aria-rowcount={items.length + 1}>
          <thead>
            <tr>
              <th scope="col" class="pick">
                <span class="sr">{W.runs.chosen}</span>
              </th>
              <Head name="run" label={W.runs.run} query={query} />
              <Head name="state" label={W.runs.state} query={query} />
              <Head figure name="best" label={W.runs.metric} query={query} />
              {["curve", "why", "experiment"].filter(has).map((name) => (
                <th scope="col" class={`wide of-${name}`} key={name}>
                  {W.runs[name]}
                </th>
              ))}
              {has("nodes") && <Head figure name="nodes" label={W.runs.nodes} query={query} wide />}
              {has("cost") && <Head figure name="cost" label={W.runs.cost} query={query} wide />}
              {has("used") && <Head figure name="used" label={W.runs.used} query={query} wide />}
              {[...labels, ...differ].filter(has).map((name) => (
                <th scope="col" class="wide" key={name}>
                  {visible(name)}
                </th>
              ))}
              {has("took") && <Head figure name="took" label={W.runs.took} query={query} wide />}
              <Head figure name="made" label={W.runs.made} query={query} />
            </tr>
          </thead>
          <tbody>
            <tr aria-hidden="true" class="space" style={{ height: `${above}px` }} />
            {rowsInSight.map((item, i) =>
              item.group === undefined ? (
                <Row
                  key={item.run}
                  run={item}
                  at={from + i + 2}
                  chosen={chosen.has(item.run)}
                  choose={choose}
                  columns={columns}
                  labels={labels}
                  differ={differ}
                  unfolds={open.has(item.run)}
                  unfold={unfold}
                />
              ) : (
                <GroupRow
                  key={`group ${item.group}`}
                  group={item}
                  at={from + i + 2}
                  wide={wide}
                  folded={folded.has(item.group)}
                  fold={() => fold(toggled(folded, item.group))}
                />
              ),
            )}
            <tr aria-hidden="true" class="space" style={{ height: `${below}px` }} />
          </tbody>
        </table>
      </div>
    </>
  );
}

/** Folds every group to its heading, or unfolds them if all are folded. */
function FoldAll({ items, folded, fold }) {
  const names = items.filter((item) => item.group !== undefined).map((item) => item.group),
    all = names.every((name) => folded.has(name));
  return (
    <button type="button" class="quiet" onClick={() => fold(new Set(all ? [] : names))}>
      {all ? W.runs.unfold : W.runs.fold}
    </button>
  );
}

/** The heading of a group: its name, how many runs it has, and in which states. The text runs across empty cells. */
const GroupRow = ({ group: { group, size, states }, at, wide, folded, fold }) => (
  <tr class="group" aria-rowindex={at}>
    <td class="pick" />
    <th scope="rowgroup">
      <button type="button" class="fold" aria-expanded={!folded} onClick={fold}>
        {folded ? "▸" : "▾"} {visible(own(W.states, group) ?? group) || W.runs.noGroup}
      </button>{" "}
      <span class="dim">{W.runs.members(size)}</span>
      {states.size > 1 &&
        [...states].map(([state, n]) => (
          <span key={state} class={`state ${state}`}>
            {n} {own(W.states, state)}
          </span>
        ))}
    </th>
    {Array.from({ length: wide + 3 }, (_, i) => (
      <td key={i} class={i > 1 && i < wide + 2 ? "wide" : ""} />
    ))}
  </tr>
);

function Head({ name, label, query, wide = false, figure = false }) {
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
      class={`of-${name} ${wide ? "wide" : ""} ${figure ? "number" : ""}`}
      aria-sort={mine ? (down ? "descending" : "ascending") : undefined}
    >
      <button type="button" onClick={turn}>
        {label}
        <span aria-hidden="true">{mine ? (down ? " ↓" : " ↑") : ""}</span>
      </button>
    </th>
  );
}

/** @param {{ run: import("../../schemas/answers.d.ts").RunRow, at: number, [more: string]: any }} props */
function Row({ run, at, chosen, choose, columns, labels, differ, unfolds, unfold }) {
  const has = (name) => columns.has(name);
  const series = shapes.get(run.run) || new Map(),
    names = [...series.keys()].filter((name) => name !== "epoch"),
    drawn = names.includes(run.headline) ? run.headline : ordered(names)[0],
    found = best(run),
    seconds = rowSeconds(run);
  return (
    <tr aria-rowindex={at} data-row={run.run} class={`${chosen ? "chosen" : ""} ${run.sweep ? "trial" : ""}`}>
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
        {run.trials > 0 ? (
          <button type="button" class="unfold" aria-expanded={unfolds} onClick={() => unfold(run.run)}>
            {unfolds ? "▾" : "▸"} {W.runs.trials(run.trials)}
          </button>
        ) : (
          <small>{visible(run.drop || run.owner || "")}</small>
        )}
      </th>
      <td>
        <State state={run.state} />
        {run.done_share !== null && <small>{W.runs.done(share(run.done_share))}</small>}
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
      {has("curve") && (
        <td class="wide">
          <Spark name={drawn} points={series.get(drawn)} />
        </td>
      )}
      {has("why") && (
        <td class="wide" title={visible(run.why)}>
          {inZone(run.why)}
        </td>
      )}
      {has("experiment") && <td class="wide">{visible(run.experiment)}</td>}
      {has("nodes") && <td class="wide number">{run.nodes || W.nothing}</td>}
      {has("cost") && <td class="wide number">{money(run.cost)}</td>}
      {has("used") && (
        <td class="wide number">{typeof run.used === "number" ? `${Math.round(run.used)} %` : W.nothing}</td>
      )}
      {labels.filter(has).map((label) => (
        <td class="wide" key={label}>
          {visible(own(run.listed, label) ?? "")}
        </td>
      ))}
      {differ.filter(has).map((name) => (
        <td class="wide" key={name}>
          {visible(own(run.parameters, name) ?? "")}
        </td>
      ))}
      {has("took") && <td class="wide number">{seconds === null ? W.nothing : duration(seconds)}</td>}
      <td class="number">
        <When at={run.created_at} />
      </td>
    </tr>
  );
}

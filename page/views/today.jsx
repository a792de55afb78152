// The first view of the day: what needs somebody, what goes on, and what happened since yesterday; one request a look.
import { get, post, remove } from "../api.js";
import { begins, between, duration, inZone, metric, money, share, shortClock, visible } from "../format.js";
import { useEffect, useState } from "preact/hooks";
import { useLive } from "../live.js";
import { ordered } from "../metric.js";
import { own } from "../own.js";
import { Ask, Command, Trouble, useOutcome, When } from "../parts.jsx";
import { doneShare } from "../record.js";
import { to } from "../route.js";
import { Spark } from "../spark.jsx";
import { W } from "../words.js";

const CURVE_POINTS = 40,
  CURVES = 25; // runs of one request
const T = W.today;

export function Today({ me }) {
  const { value, error, again } = useLive((signal) => get(["today"], {}, { signal }), [], { soon: 5000 });
  const shapes = useShapes(value?.running);
  return (
    <section class="today">
      <h1 tabindex={-1}>{T.title}</h1>
      {error && value && (
        <p class="notice bad" role="alert">
          {visible(error.message)}
        </p>
      )}
      <Trouble error={error} value={value} />
      {value?.empty && <Begin />}
      {value && Object.keys(value.unknown).length > 0 && <Unknown parts={value.unknown} />}
      {value && !value.empty && <Parts value={value} shapes={shapes} me={me} again={again} />}
    </section>
  );
}

const Unknown = ({ parts }) => (
  <div class="notice bad" role="alert">
    <b>{T.unknown}</b>
    {Object.entries(parts).map(([part, why]) => (
      <p key={part}>{visible(`${part}: ${why}`)}</p>
    ))}
  </div>
);

const Begin = () => (
  <div class="notice">
    <p>{T.begin}</p>
    {T.beginCommands.map((text) => (
      <Command key={text} text={text} />
    ))}
    <p>
      {T.or} <a href="#/drops">{T.dropHere}</a>
    </p>
  </div>
);

/**
 * @typedef {import("../../schemas/answers.d.ts").Today} TodayAnswer
 * @typedef {import("../app.jsx").Me} Me
 * @typedef {Map<string, number[][]>} Series the points of a run's metrics by name
 * @param {{ value: TodayAnswer, shapes: Map<string, Series>, me: Me, again: () => void }} props
 */
function Parts({ value, shapes, me, again }) {
  return (
    <>
      <section class="part">
        <h2>{T.needs(value.needs.length)}</h2>
        {value.needs.length === 0 && value.unknown.storage === undefined && <p class="dim">{T.nothing}</p>}
        <ul class="needs">
          {value.needs.map((item) => (
            <Need key={`${item.kind}/${item.name}/${item.lease}`} item={item} me={me} again={again} />
          ))}
        </ul>
      </section>
      <section class="part">
        <h2>{T.now}</h2>
        {value.running.length + value.waiting.length === 0 && <p class="dim">{T.quiet}</p>}
        {value.running.length > 0 && <Running runs={value.running} shapes={shapes} />}
        {value.waiting.length > 0 && <Waiting runs={value.waiting} />}
      </section>
      <section class="part">
        <h2>{T.since}</h2>
        <Since value={value} />
      </section>
    </>
  );
}

const LINKS = {
  failed: (item) => to("run", [item.name]),
  late: (item) => to("run", [item.name]),
  rejected: (item) => to("drops", item.name.split("/")),
  budget: () => to("money"),
  poison: () => to("health"),
  idle: () => to("clusters"),
};

/**
 * One thing that needs somebody, why, and its one action.
 * @param {{ item: TodayAnswer["needs"][number], me: Me, again: () => void }} props
 */
function Need({ item, me, again }) {
  const [outcome, attempt] = useOutcome(),
    act = (what, said) =>
      attempt(async () => {
        await what();
        again();
        return said;
      });
  const ask = me.may_change && own(actions(item, act), item.kind);
  return (
    <li>
      <span class={`state ${own(SIGNS, item.kind) ?? "failed"}`}>{own(T.kinds, item.kind) || visible(item.kind)}</span>
      <div>
        <a href={(LINKS[item.kind] || LINKS.failed)(item)}>{visible(item.name)}</a>{" "}
        <span class="dim">{item.at && <When at={item.at} />}</span>
        <p class="why">{why(item)}</p>
        {outcome}
      </div>
      {ask || (
        <a class="button" href={(LINKS[item.kind] || LINKS.failed)(item)}>
          {own(T.open, item.kind) || T.look}
        </a>
      )}
    </li>
  );
}

const SIGNS = { late: "", budget: "", idle: "" }; // drawn as a warning; the others as a failure

/** @param {TodayAnswer["needs"][number]} item */
function why(item) {
  if (item.kind === "budget") {
    const used = item.spent + item.reserved;
    return T.budget(money(item.spent), money(item.reserved), money(item.month), share(used / item.month));
  }
  if (item.kind === "poison") return T.poison(item.messages);
  if (item.kind === "idle") return T.idle(item.nodes, shortClock(item.until), visible(item.why));
  return inZone(item.why.split("\n")[0]);
}

const actions = (item, act) => ({
  failed: (
    <Ask
      label={W.run.retry}
      question={W.run.retryAsk(item.at_most === null ? "" : W.run.atMost(money(item.at_most)))}
      yes={W.run.retryYes}
      no={W.run.no}
      act={() =>
        act(async () => {
          location.hash = to("run", [(await post(["runs", item.name, "retry"])).run]);
        })
      }
    />
  ),
  poison: (
    <Ask
      label={W.health.replay}
      question={W.health.replayAsk(String(item.messages), item.name)}
      yes={W.health.replayYes}
      no={W.run.no}
      act={() => act(() => post(["queues", item.name, "replay"]), W.health.replayed(item.messages))}
    />
  ),
  idle: (
    <Ask
      label={W.clusters.end}
      question={W.clusters.endAsk}
      yes={W.clusters.end}
      no={W.clusters.no}
      act={() => act(() => remove(["leases", item.lease]), W.clusters.ended)}
    />
  ),
});

/** @param {{ runs: TodayAnswer["running"], shapes: Map<string, Series> }} props */
function Running({ runs, shapes }) {
  return (
    <div class="scroll" tabindex={0} role="region" aria-label={T.now}>
      <table>
        <thead>
          <tr>
            <th scope="col">{W.runs.run}</th>
            <th scope="col" class="wide">
              {W.runs.curve}
            </th>
            <th scope="col">{T.done}</th>
            <th scope="col" class="number">
              {W.runs.cost}
            </th>
            <th scope="col" class="number wide">
              {T.runningFor}
            </th>
          </tr>
        </thead>
        <tbody>
          {runs.map((run) => (
            <tr key={run.run} data-row={run.run}>
              <th scope="row">
                <a class="row" href={to("run", [run.run])}>
                  {visible(run.run)}
                </a>
              </th>
              <td class="wide">
                <Shape run={run} series={shapes.get(run.run)} />
              </td>
              <td>{done(run, shapes.get(run.run))}</td>
              <td class="number">
                {money(run.cost)}
                {run.at_most !== null && <small>{W.run.atMost(money(run.at_most))}</small>}
              </td>
              <td class="number wide">{run.started_at ? duration(between(run.started_at)) : W.nothing}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/**
 * The curve of the metric that the run is judged by, or of the usual one while no value of it is known.
 * @param {{ run: TodayAnswer["running"][number], series?: Series }} props
 */
function Shape({ run, series = new Map() }) {
  const [usual] = ordered([...series.keys()].filter((name) => name !== "epoch")),
    name = series.has(run.headline) ? run.headline : usual;
  return <Spark name={name ?? ""} points={series.get(name)} />;
}

/**
 * The share that is done, and the date by which all of it should be.
 * @param {TodayAnswer["running"][number]} run
 * @param {Series | undefined} series
 */
function done(run, series) {
  const part = run.done_share ?? doneShare(series, run.epochs);
  if (part === null && !run.done_by) return W.nothing;
  return (
    <>
      {part !== null && share(part)}
      {run.done_by && ` ${T.by(shortClock(run.done_by))} `}
      {run.late && <strong>{W.run.late}</strong>}
    </>
  );
}

/** @param {{ runs: TodayAnswer["waiting"] }} props */
const Waiting = ({ runs }) => (
  <ul class="lines spaced">
    {runs.map((run) => (
      <li key={run.run}>
        <span class="state">{W.states.waiting}</span> <a href={to("run", [run.run])}>{visible(run.run)}</a>
        <small>
          <When at={run.since} /> · {inZone(run.why)} {begins(run)}
        </small>
      </li>
    ))}
  </ul>
);

/** @param {{ value: TodayAnswer }} props */
function Since({ value }) {
  return (
    <ul class="lines">
      {value.completed.map((run) => (
        <li key={run.run}>
          <span class="state completed">{W.states.completed}</span>{" "}
          <a href={to("run", [run.run])}>{visible(run.run)}</a> <small>{judged(run)}</small>
        </li>
      ))}
      {value.promotions.map((move) => (
        <li key={`${move.model}/${move.alias}`}>
          <span class="state sealed">{T.promoted}</span>{" "}
          <a href={to("models")}>{visible(`${move.model}/${move.version}`)}</a> → {visible(move.alias)}
          <small>
            <When at={move.at} />
            {visible([move.by && ` · ${move.by}`, move.why && ` · ${move.why}`].filter(Boolean).join(""))}
          </small>
        </li>
      ))}
      {value.spent && (
        <li>
          <a href={to("money")}>{T.spent(money(value.spent.today), money(value.spent.yesterday))}</a>
        </li>
      )}
      {value.next.slice(0, NEXT).map((one) => (
        <li key={one.schedule}>
          <a href={to("schedules")}>{T.next(visible(one.what || W.schedules.aJob), shortClock(one.at))}</a>
        </li>
      ))}
    </ul>
  );
}

const NEXT = 5;

/**
 * What a completed run reached, and whether that is better than the champion and the run before it.
 * @param {TodayAnswer["completed"][number]} run
 */
function judged(run) {
  if (run.metric === null || run.value === null) return <When at={run.at} />;
  const words = [
    `${run.metric} ${metric(run.metric, run.value)}`,
    ...[run.champion && { ...run.champion, name: T.champion(run.champion.name) }, run.before]
      .filter(Boolean)
      .map(({ name, value, better }) => T.compared(better, value === run.value, name, metric(run.metric, value))),
  ];
  return (
    <>
      <When at={run.at} /> · {visible(words.join(", "))}
    </>
  );
}

/**
 * The curves of what trains, run by run as Maps, asked for when other runs train.
 * @param {TodayAnswer["running"] | undefined} running
 */
function useShapes(running) {
  const [shapes, set] = useState(/** @type {Map<string, Series>} */ (new Map())),
    names = (running || []).slice(0, CURVES).map((run) => run.run);
  useEffect(() => {
    if (!names.length) return;
    get(["curves"], { runs: names.join(","), points: CURVE_POINTS }).then(
      ({ runs }) => set(new Map(Object.entries(runs).map(([name, series]) => [name, new Map(Object.entries(series))]))),
      () => {}, // the next look says that the API is away
    );
  }, [names.join(), running]);
  return shapes;
}

// One run: what it is, why it waits, its life, curves, log and files; live by one request a look.
import { get, post } from "../api.js";
import { Chart } from "../chart.jsx";
import { columns } from "../series.js";
import { finer } from "../finer.js";
import { beside, between, bytes, clock, duration, money, number, shell, shortClock, visible } from "../format.js";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { useLive } from "../live.js";
import { Log, Reader } from "../log.jsx";
import { ordered } from "../metric.js";
import { announce, Ask, Command, Drawing, Facts, State, Trouble, useOutcome, When } from "../parts.jsx";
import { cost, ended, took } from "../record.js";
import { refine, to } from "../route.js";
import { W } from "../words.js";

const FIELDS = ["experiment", "route", "cluster", "nodes", "attempts", "data_note", "archive_error"];
const IDENTITY = ["job", "code", "environment", "output", "fingerprint"]; // long, and seldom looked at
const MOMENTS = ["created_at", "archived_at", "cancel_asked_at", "gave_up_at"];
const settled = (run) => ended(run) && Boolean(run.archived_at || run.gave_up_at);

export function Run({ route, me }) {
  const name = route.parts[0] || "",
    rank = Number(route.query.rank) || 0;
  const reader = useMemo(() => new Reader(name, rank), [name, rank]),
    before = useRef({});
  useEffect(
    () => () => {
      before.current = {};
    },
    [reader],
  );
  const { value, error, again } = useLive(
    async (signal) =>
      follow(
        before.current,
        reader,
        await get(["runs", name, "live"], { after: before.current.next, rank, offset: reader.next }, { signal }),
      ),
    [reader],
    { still: (seen) => settled(seen.run) && reader.complete },
  );
  const run = value?.run,
    left = useArtifacts(name, Boolean(run?.archived_at)),
    last = useRef("");
  useEffect(() => {
    if (run && last.current && last.current !== run.state) announce(W.runs.changed(visible(name), W.states[run.state]));
    last.current = run?.state || "";
  }, [run?.state]);
  if (!run)
    return (
      <section>
        <h1 tabindex="-1">{visible(name)}</h1>
        <Trouble error={error} value={run} />
        <p>
          <a href="#/runs">{W.missing.back}</a>
        </p>
      </section>
    );
  return (
    <article class="run">
      <div class="head">
        <h1 tabindex="-1">{visible(run.run)}</h1>
        <State state={run.state} />
        <Actions run={run} me={me} again={again} />
      </div>
      {error && (
        <p class="notice bad" role="alert">
          {visible(error.message)}
        </p>
      )}
      <Why run={run} />
      <nav class="jumps" aria-label={W.run.jumps}>
        {["curves", "log", run.archived_at && "files"].filter(Boolean).map((part) => (
          <button
            key={part}
            type="button"
            class="quiet small"
            onClick={() => document.getElementById(`part-${part}`)?.scrollIntoView()}
          >
            {W.run[part]}
          </button>
        ))}
      </nav>
      <div class="beside">
        <div>
          <section class="card">
            <h2>{W.run.phases}</h2>
            <Phases run={run} />
          </section>
          {run.elastic && (
            <section class="card">
              <h2>{W.run.members}</h2>
              <Members run={run} />
            </section>
          )}
          <section class="part" id="part-curves">
            <h2>{W.run.curves}</h2>
            <Curves run={name} series={value.series} query={route.query} />
          </section>
          <section class="part" id="part-log">
            <h2>{W.run.log}</h2>
            <Log key={rank} reader={reader} ranks={value.ranks} rank={rank} query={route.query} />
          </section>
          {Object.keys(left?.pictures || {}).length > 0 && (
            <section class="part">
              <h2>{W.run.pictures}</h2>
              <Pictures pictures={left.pictures} />
            </section>
          )}
          <section class="part" id="part-files">
            <h2>{W.run.files}</h2>
            <Files run={run} left={left} />
          </section>
        </div>
        <aside aria-label={W.run.facts}>
          <section class="card">
            <h2>{W.run.facts}</h2>
            <What run={run} />
          </section>
          {(run.notes?.length > 0 || me.may_change) && (
            <section class="card">
              <h2>{W.run.notes}</h2>
              <Notes run={run} me={me} again={again} />
            </section>
          )}
          {me.may_change && (
            <section class="card">
              <h2>{W.run.fields.tags}</h2>
              <Tags run={run} again={again} />
            </section>
          )}
          <section class="card">
            <h2>{W.run.history}</h2>
            <History run={run} />
          </section>
          {run.audit?.length > 0 && (
            <section class="card">
              <h2>{W.run.audit}</h2>
              <Audit run={run} />
            </section>
          )}
          <section class="card">
            <h2>{W.run.commands}</h2>
            {commands(run).map((text) => (
              <Command key={text} text={text} />
            ))}
          </section>
        </aside>
      </div>
    </article>
  );
}

/** What was known and what is new, together; the very same object as before if nothing is new. */
function follow(known, reader, found) {
  if (found === known.answer) return known.value;
  const fresh = Object.keys(found.metrics.series).length > 0,
    text = JSON.stringify(found.run);
  const changed =
    !known.value || fresh || text !== known.text || found.log?.text || found.log?.complete !== known.complete;
  const series = fresh || !known.value ? joined(known.value?.series || {}, found.metrics.series) : known.value.series;
  reader.take(found.log);
  const ranks = found.log?.ranks.length ? found.log.ranks : known.value?.ranks || [];
  Object.assign(known, {
    answer: found,
    text,
    next: found.metrics.next,
    complete: found.log?.complete ?? known.complete,
  });
  if (changed) known.value = { run: found.run, series, ranks };
  return known.value;
}

function joined(old, more) {
  const all = { ...old };
  for (const [name, points] of Object.entries(more)) all[name] = [...(all[name] || []), ...points];
  return all;
}

function useArtifacts(name, archived) {
  const [left, set] = useState(null);
  useEffect(() => {
    if (archived) get(["runs", name, "artifacts"], { pictures: "true" }).then(set, (fault) => set({ fault }));
  }, [name, archived]);
  return left;
}

function Actions({ run, me, again }) {
  const [outcome, attempt] = useOutcome();
  const retry = () =>
    attempt(async () => {
      const made = await post(["runs", run.run, "retry"]);
      location.hash = to("run", [made.run]);
      return W.run.retried(made.run);
    });
  const cancel = () =>
    attempt(async () => {
      await post(["runs", run.run, "cancel"]);
      again();
      return W.run.canceled;
    });
  return (
    <>
      <div class="actions">
        <a class="button" href={to("compare", [], { runs: [run.run, run.retry_of].filter(Boolean).join(",") })}>
          {W.run.compare}
        </a>
        {me.may_change &&
          !ended(run) &&
          (run.cancel_asked_at ? (
            <span class="dim">{W.run.canceling}</span>
          ) : (
            <Ask
              label={W.run.cancel}
              question={W.run.cancelAsk}
              yes={W.run.yes}
              no={W.run.no}
              act={cancel}
              kind="danger"
            />
          ))}
        {me.may_change && ended(run) && run.archived_at && <GoOn run={run} attempt={attempt} />}
        {me.may_change && ended(run) && (
          <button type="button" class="primary" onClick={retry}>
            {W.run.retry}
          </button>
        )}
      </div>
      {outcome}
    </>
  );
}

/** Go on from the newest checkpoint, perhaps with other parameters: more epochs, say. */
function GoOn({ run, attempt }) {
  const [open, set] = useState(false),
    epochs = run.state === "completed" && run.parameters?.epochs;
  const submit = (event) => {
    event.preventDefault();
    const given = event.target.elements.parameters.value
      .split(/[\s,]+/)
      .filter(Boolean)
      .map((pair) => pair.split(/=(.*)/s).slice(0, 2));
    attempt(async () => {
      const made = await post(["runs", run.run, "continue"], {
        parameters: Object.fromEntries(given.map(([name, text]) => [name, valued(text)])),
      });
      location.hash = to("run", [made.run]);
      return W.run.retried(made.run);
    });
  };
  if (!open)
    return (
      <button type="button" onClick={() => set(true)}>
        {W.run.goOn}
      </button>
    );
  return (
    <form class="inline" onSubmit={submit}>
      <label>
        {W.run.goOnWith}
        <input name="parameters" placeholder="epochs=20" defaultValue={epochs ? `epochs=${2 * epochs}` : ""} />
      </label>
      <button type="submit">{W.run.goOn}</button>
      <button type="button" class="quiet" onClick={() => set(false)}>
        {W.run.no}
      </button>
    </form>
  );
}

const valued = (text = "") =>
  text === "true" || text === "false"
    ? text === "true"
    : text !== "" && Number.isFinite(Number(text))
      ? Number(text)
      : text;

function Why({ run }) {
  const waits = ["received", "submitted", "queued"].includes(run.state),
    why = (waits && run.waiting?.why) || run.reason || (waits ? run.history.at(-1)?.why : ""),
    azure = waits && run.waiting?.words;
  if (!why) return null;
  return (
    <div class={`notice ${run.state === "failed" ? "bad" : ""}`}>
      <b>{waits ? W.run.waits : W.run.reason}</b>
      <div class="reason" tabindex="0" role="region" aria-label={W.run.reason}>
        {visible(why)}
      </div>
      {azure && (
        <details>
          <summary>{W.run.words}</summary>
          {visible(azure)}
        </details>
      )}
      {waits && run.waiting?.since && (
        <>
          {" "}
          <When at={run.waiting.since} />
        </>
      )}
    </div>
  );
}

/** [{ name, seconds }] in the order in which they were: the same state twice is one phase each time. */
function phases(run) {
  const now = settled(run) ? null : undefined,
    moments = run.history,
    found = [];
  moments.forEach((moment, i) => {
    if (!W.run.phaseNames[moment.state]) return;
    const seconds = between(moment.at, moments[i + 1]?.at ?? now);
    found.push({ name: moment.state, seconds, active: i === moments.length - 1 });
  });
  if (ended(run))
    found.push({
      name: "archive",
      seconds: between(moments.at(-1).at, run.archived_at ?? run.gave_up_at ?? undefined),
      active: !run.archived_at && !run.gave_up_at,
    });
  return found.filter(({ seconds }) => Number.isFinite(seconds));
}

function Phases({ run }) {
  const all = phases(run),
    whole = all.reduce((sum, phase) => sum + phase.seconds, 0) || 1;
  return (
    <>
      <div class="phases" aria-hidden="true">
        {all.map((phase, i) => (
          <span key={i} class={`phase-${phase.name}`} style={{ flexGrow: Math.max(0.004, phase.seconds / whole) }} />
        ))}
      </div>
      <ol class="phase-list">
        {all.map((phase, i) => (
          <li key={i}>
            <i class={`phase-${phase.name}`} />
            {W.run.phaseNames[phase.name]} <b>{duration(phase.seconds)}</b>
            {phase.active ? " …" : ""}
          </li>
        ))}
      </ol>
    </>
  );
}

function What({ run }) {
  const f = W.run.fields,
    known = (name) => [f[name], run[name] === null || run[name] === undefined ? "" : String(run[name])];
  const best = [...new Set([run.best?.metric, ...ordered(Object.keys(run.metrics.best))])]
    .filter(Boolean)
    .slice(0, 3)
    .map((name) => `${name} ${number(run.metrics.best[name])}`)
    .join(", ");
  return (
    <>
      <Facts
        rows={[
          [W.runs.best, best],
          [
            W.run.parameters,
            Object.entries(run.parameters || {})
              .map(([name, value]) => `${name}=${value}`)
              .join(", "),
          ],
          [W.run.cost, run.cost ? `${money(cost(run))}${run.cost.unpriced ? W.run.unpriced : ""}` : ""],
          [
            f.drop,
            run.drop && (
              <>
                <a href={to("drops", run.drop.split("/"))}>{visible(run.drop)}</a>
                {run.generation ? ` ${W.run.generation(run.generation)}` : ""}
              </>
            ),
          ],
          [W.run.continues, run.continues && <a href={to("run", [run.continues])}>{visible(run.continues)}</a>],
          [W.run.retryOf, run.retry_of && <a href={to("run", [run.retry_of])}>{visible(run.retry_of)}</a>],
          [
            f.tags,
            Object.entries(run.tags)
              .map(([name, value]) => `${name}=${value}`)
              .join(" "),
          ],
          [
            f.owner,
            run.owner && (
              <>
                {visible(run.owner)}
                <small>{visible(run.owner_id) || W.run.claim}</small>
              </>
            ),
          ],
          [W.run.canceledBy, run.canceled_by],
          ...FIELDS.map(known),
          [
            f.git,
            run.git && (
              <>
                <span class="mono">{visible(run.git.commit.slice(0, 12))}</span>
                {run.git.branch ? ` ${visible(run.git.branch)}` : ""}
                {run.git.dirty ? `, ${f.dirty}` : ""}
                <small>{visible(run.git.repository)}</small>
              </>
            ),
          ],
          ...MOMENTS.map((name) => [
            f[name],
            run[name] && (
              <>
                <When at={run[name]} /> <span class="dim">{clock(run[name])}</span>
              </>
            ),
          ]),
          [W.runs.took, took(run) === null ? "" : duration(took(run))],
        ]}
      />
      <details>
        <summary>{W.run.identity}</summary>
        <Facts rows={IDENTITY.map(known)} />
      </details>
    </>
  );
}

function Notes({ run, me, again }) {
  const [outcome, attempt] = useOutcome();
  const submit = async (event) => {
    event.preventDefault();
    const form = event.target;
    if (
      await attempt(async () => {
        await post(["runs", run.run, "notes"], { text: form.elements.text.value });
      })
    ) {
      form.reset();
      again();
    }
  };
  return (
    <>
      {run.notes?.length > 0 && (
        <ul class="lines">
          {run.notes.map((note) => (
            <li key={note.at}>
              {visible(note.text)}
              <small>
                <When at={note.at} />
                {note.by ? ` · ${visible(note.by)}` : ""}
              </small>
            </li>
          ))}
        </ul>
      )}
      {me.may_change && (
        <form class="note" onSubmit={submit}>
          <label>
            <span class="sr">{W.run.note}</span>
            <input name="text" maxlength="500" placeholder={W.run.note} required />
          </label>
          <button type="submit">{W.run.addNote}</button>
        </form>
      )}
      {outcome}
    </>
  );
}

/** The tags, each with what takes it off, and a line that sets one. The project stays: it says who pays. */
function Tags({ run, again }) {
  const [outcome, attempt] = useOutcome(),
    field = useRef();
  const change = (wanted, said) =>
    attempt(async () => {
      await post(["runs", run.run, "tags"], wanted);
      again();
      return said;
    });
  const take = async (name) => {
    await change({ remove: [name] }, W.run.tagGone(visible(name)));
    field.current?.focus();
  };
  const submit = async (event) => {
    event.preventDefault();
    const [, name, value] = field.current.value.match(/^\s*([^=]*?)\s*=\s*(.*?)\s*$/);
    if (await change({ set: { [name]: value } }, W.run.tagSet(visible(name)))) {
      event.target.reset();
      field.current.focus();
    }
  };
  return (
    <>
      <ul class="tags">
        {Object.entries(run.tags).map(([name, value]) => (
          <li key={name}>
            {visible(`${name}=${value}`)}
            {name !== "project" && (
              <>
                {" "}
                <button
                  type="button"
                  class="quiet small"
                  aria-label={W.run.untag(visible(name))}
                  onClick={() => take(name)}
                >
                  ×
                </button>
              </>
            )}
          </li>
        ))}
      </ul>
      <form class="note" onSubmit={submit}>
        <label>
          <span class="sr">{W.run.tag}</span>
          <input ref={field} name="tag" placeholder={W.run.tag} pattern="[^=]+=.+" title={W.run.tagForm} required />
        </label>
        <button type="submit">{W.run.setTag}</button>
      </form>
      {outcome}
    </>
  );
}

const Audit = ({ run }) => (
  <ul class="lines">
    {run.audit.map((entry) => (
      <li key={entry.at}>
        {visible(entry.what)}
        <small>
          <When at={entry.at} />
          {entry.by ? ` · ${visible(entry.by)}` : ""}
        </small>
      </li>
    ))}
  </ul>
);

const History = ({ run }) => (
  <ol class="history">
    {run.history.map((moment, i) => (
      <li key={i}>
        <time datetime={moment.at} class="dim">
          {beside(moment.at, run.created_at)}
        </time>
        <span>
          <State state={moment.state} />
        </span>
        {moment.why && <span class="why">{visible(moment.why.split("\n")[0])}</span>}
      </li>
    ))}
  </ol>
);

function commands(run) {
  const name = shell(run.run),
    say = (rest) => `python3 trainyard.py ${rest}`;
  return [
    say(`show ${name}`),
    ended(run) ? say(`logs ${name}`) : say(`logs ${name} --follow`),
    say(`metrics ${name}`),
    run.archived_at ? say(`fetch ${name}`) : say(`fetch ${name} --wait`),
    ended(run) ? say(`retry ${name} --follow`) : say(`cancel ${name}`),
  ];
}

const LABELS = 88,
  LINE = 22; // pixels: room for what a line of the timeline is called, and its height

/** Nodes over time as an area, and under it a bar for each member's present job. */
function Members({ run }) {
  const { members, sizes } = run.elastic;
  const changes = sizes.map((size) => `${shortClock(size.at)} ${W.run.nodesNow(size.nodes)}`);
  const told = `${W.run.timeline}: ${changes.join(", ")}`;
  return (
    <>
      <ul class="lines">
        {members.map((member) => (
          <li key={member.member}>
            {W.run.member(member.member)} <State state={member.state} />{" "}
            <span class="dim">
              {W.run.attempt(member.attempt)}
              {member.why ? ` · ${visible(member.why.split("\n")[0])}` : ""}
            </span>
          </li>
        ))}
      </ul>
      <Drawing label={told} height={74 + LINE * members.length} draw={(width) => life(run, width)} />
      {lost(sizes).length > 0 && (
        <p class="dim">
          <span class="esc">│</span> {W.run.evicted}
        </p>
      )}
    </>
  );
}

/** The moments at which there were fewer nodes than before. */
const lost = (sizes) => sizes.filter((size, i) => i && size.nodes < sizes[i - 1].nodes);

function life(run, width) {
  const { members, sizes } = run.elastic,
    start = new Date(run.created_at).getTime(),
    end = ended(run) ? new Date(run.history.at(-1).at).getTime() : Date.now();
  const across = (at) =>
      LABELS +
      ((Math.min(Math.max(new Date(at).getTime(), start), end) - start) / (end - start || 1)) * (width - LABELS - 4),
    most = Math.max(1, ...sizes.map((size) => size.nodes));
  const corners = sizes.flatMap((size, i) => {
    const y = 60 - (size.nodes / most) * 50;
    return [`${across(size.at)},${y}`, `${across(sizes[i + 1]?.at ?? end)},${y}`];
  });
  const area = corners.length
    ? `${corners[0].split(",")[0]},60 ${corners.join(" ")} ${corners.at(-1).split(",")[0]},60`
    : "";
  return (
    <>
      <text x="0" y="22">
        {W.run.nodesNow(most)}
      </text>
      <polygon class="area" points={area} />
      {lost(sizes).map((size) => (
        <line key={size.at} class="end" x1={across(size.at)} x2={across(size.at)} y1="4" y2="64" />
      ))}
      {members.map((member, i) => (
        <g key={member.member}>
          <text x="0" y={86 + LINE * i}>
            {W.run.member(member.member)}
          </text>
          <rect
            class={member.state === "running" || ended(member) ? "life" : "waiting"}
            x={across(member.at)}
            y={74 + LINE * i}
            height="14"
            width={Math.max(3, across(end) - across(member.at))}
            rx="3"
          />
        </g>
      ))}
    </>
  );
}

export function Curves({ run, series, query }) {
  const names = ordered(Object.keys(series).filter((name) => name !== "epoch")),
    how = query.x || "step",
    logarithmic = query.log === "1";
  const drawn = useMemo(
    () =>
      names.map((name) => [
        name,
        [{ name, label: "", ...columns(series[name], placing(how, series, series[name])) }],
        finer([{ run, all: series, name, label: "" }], name, (all, points) => placing(how, all, points)),
      ]),
    [series, how],
  );
  if (!names.length) return <p class="dim">{W.run.noCurves}</p>;
  return (
    <>
      <Axis query={query} epochs={Boolean(series.epoch)} />
      <div class="charts">
        {drawn.map(([name, one, more]) => (
          <Chart key={name} title={name} series={one} finer={more} logarithmic={logarithmic} sync="run" />
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
        onChange={(e) => refine({ x: e.target.value === "step" ? "" : e.target.value })}
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
        onChange={(e) => refine({ log: e.target.checked ? "1" : "" })}
      />
      {W.chart.logarithmic}
    </label>
    <span class="dim">{W.chart.zoom}</span>
  </div>
);

/** Where a point is drawn: at its step, its seconds since the first point, or the epoch that the run reports. */
export function placing(how, all, points) {
  if (how === "time") {
    const start = points.find((point) => point[2] !== null)?.[2] ?? 0;
    return (point) => (point[2] ?? start) - start;
  }
  const epochs = all.epoch;
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

const Pictures = ({ pictures }) => (
  <div class="pictures">
    {Object.entries(pictures).map(([name, url]) => (
      <figure key={name}>
        <img src={url} alt={visible(name)} crossorigin="anonymous" loading="lazy" />
        <figcaption>{visible(name)}</figcaption>
      </figure>
    ))}
  </div>
);

function Files({ run, left }) {
  const [outcome, attempt] = useOutcome();
  const download = (name) =>
    attempt(async () => {
      location.assign((await get(["runs", run.run, "artifacts", ...name.split("/")], { link: "true" })).url);
    });
  if (run.archived_at && !left?.files) return <Trouble error={left?.fault} value={undefined} />;
  if (!left?.complete) return <p class="dim">{W.run.noFiles}</p>;
  return (
    <>
      {outcome}
      <div class="scroll" tabindex="0" role="region" aria-label={W.run.files}>
        <table>
          <tbody>
            {left.files.map((file) => (
              <tr key={file.name}>
                <td class="mono">{visible(file.name)}</td>
                <td class="number">{bytes(file.size)}</td>
                <td>
                  <button
                    type="button"
                    class="small"
                    aria-label={W.run.download(visible(file.name))}
                    onClick={() => download(file.name)}
                  >
                    ↓
                  </button>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {left.outputs
        .filter((output) => output.state !== "archived")
        .map((output) => (
          <p key={output.name} class="notice">
            {visible(output.name)}: {visible(output.state)}. {visible(output.why || "")}
          </p>
        ))}
    </>
  );
}

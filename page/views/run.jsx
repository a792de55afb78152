// One run: what it is, why it waits, its life, curves, log and files; live by one request a look.
import { get } from "../api.js";
import { visible } from "../format.js";
import { useLive } from "../live.js";
import { Log } from "../log.jsx";
import { mapOf } from "../own.js";
import { announce, Command, State, Trouble } from "../parts.jsx";
import { JobsReader, Reader } from "../reader.js";
import { to } from "../route.js";
import { jobName } from "../record.js";
import { W } from "../words.js";
import { Findings } from "./data_card.jsx";
import { Actions, commands } from "./run/actions.jsx";
import { Curves } from "./run/curves.jsx";
import { Audit, History, Notes, Tags, What } from "./run/facts.jsx";
import { Files, Pictures } from "./run/files.jsx";
import { Members, Phases, isOver, Sick, Why } from "./run/progress.jsx";
import { Steps } from "./run/steps.jsx";
import { Trials } from "./run/trials.jsx";
import { Usage, useTimes, useUsage } from "./run/usage.jsx";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";

export function Run({ route, me }) {
  const name = route.parts[0] || "",
    // what the log begins with, once the run's kind is known
    [first, setFirst] = useState(/** @type {{ rank: string | number, nodes?: number }} */ ({ rank: 0 })),
    rank = route.query.rank ?? first.rank,
    most = rank === ALL ? first.nodes : 0,
    asked = Number(rank) || 0;
  const reader = useMemo(() => (most ? new JobsReader(name, most) : new Reader(name, asked)), [name, asked, most]),
    before = useRef(/** @type {any} */ ({})),
    shown = useRef(null);
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
        await get(["runs", name, "live"], { after: before.current.next, rank: asked, offset: reader.next }, { signal }),
      ),
    [reader],
    { still: (seen) => isOver(seen.run) && reader.complete },
  );
  if (value) shown.current = value; // another rank's log begins while the rest stays
  const { run, series, ranks } = shown.current || {},
    left = useArtifacts(name, Boolean(run?.archived_at)),
    begun = Boolean(run?.history.some((moment) => moment.state === "running")),
    usage = useUsage(name, begun, Boolean(run && isOver(run))),
    { start, span } = useTimes(series, usage),
    last = useRef("");
  useEffect(() => {
    if (run) setFirst(firstLog(run));
  }, [Boolean(run)]);
  useEffect(() => {
    if (run && last.current && last.current !== run.state) announce(W.runs.changed(visible(name), W.states[run.state]));
    last.current = run?.state || "";
  }, [run?.state]);
  if (!run)
    return (
      <section>
        <h1 tabindex={-1}>{visible(name)}</h1>
        <Trouble error={error} value={run} />
        <p>
          <a href="#/runs">{W.run.back}</a>
        </p>
      </section>
    );
  const kind = run.elastic ? "job" : run.steps.length ? "step" : "rank";
  const log = (
    <section class="part" id="part-log" key="log">
      <h2>{W.run.log}</h2>
      <Log key={rank} reader={reader} ranks={namedRanks(run, ranks)} rank={rank} kind={kind} query={route.query} />
    </section>
  );
  return (
    <article class="run">
      <div class="head">
        <h1 tabindex={-1}>{visible(run.run)}</h1>
        <State state={run.state} />
        <Actions run={run} me={me} again={again} />
      </div>
      {error && (
        <p class="notice bad" role="alert">
          {visible(error.message)}
        </p>
      )}
      <Sick run={run} />
      <Why run={run} />
      {run.data_check && (
        <Findings
          said={run.data_check}
          title={W.data.findings}
          more={run.drop && <a href={to("drops", run.drop.split("/"))}>{W.data.card}</a>}
        />
      )}
      <nav class="jumps" aria-label={W.run.jumps}>
        {["curves", "log", run.archived_at && "files"].filter(Boolean).map((part) => (
          <button key={part} type="button" class="quiet small" onClick={() => jump(`part-${part}`)}>
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
          {run.sweep && (
            <section class="part" id="part-trials">
              <h2>{W.sweep.trials}</h2>
              <Trials run={run} />
            </section>
          )}
          {run.steps.length > 0 && (
            <section class="part" id="part-steps">
              <h2>{W.steps.title}</h2>
              <Steps run={run} />
            </section>
          )}
          {run.elastic && (
            <section class="card">
              <h2>{W.run.members}</h2>
              <Members run={run} />
            </section>
          )}
          {run.state === "failed" && log}
          <section class="part" id="part-curves">
            <h2>{W.run.curves}</h2>
            <Curves run={name} series={series} query={route.query} span={span} />
          </section>
          {usage?.fault && <p class="notice">{visible(usage.fault.message)}</p>}
          {usage?.samples.length > 0 && (
            <section class="part" id="part-nodes">
              <h2>{W.usage.title}</h2>
              <Usage usage={usage} start={start} span={span} sync={route.query.x === "time" ? "run" : "nodes"} />
            </section>
          )}
          {run.state !== "failed" && log}
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
            <What run={run} usage={usage} />
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

/** Scroll to a part, and move the focus to its heading. */
function jump(id) {
  /** @type {HTMLElement | null} */
  const heading = document.querySelector(`#${id} h2`);
  if (!heading) return;
  heading.tabIndex = -1;
  heading.focus({ preventScroll: true });
  heading.scrollIntoView();
}

const ALL = "all"; // of an elastic run: the logs of its jobs as one

/** The log that a run begins with: all jobs of an elastic one, the failed step of a pipeline, else rank 0. */
function firstLog(run) {
  if (run.elastic) return { rank: ALL, nodes: run.nodes };
  const failed = run.steps.findIndex((step) => step.state === "failed" && step.job && !hasSteps(run, step));
  return { rank: Math.max(0, failed) };
}

const hasSteps = (run, step) => run.steps.some((other) => other.step.startsWith(`${step.step}.`));

/** [[rank, name]]: jobs of an elastic run and steps of a pipeline by their names. */
function namedRanks(run, ranks) {
  if (run.elastic) {
    return [[ALL, W.log.allJobs], ...ranks.map((rank) => [rank, jobName(rank, run.nodes)])];
  }
  return ranks.map((rank) => [rank, run.steps[rank]?.step ?? String(rank)]);
}

/** What was known and what is new, together; the very same object as before if nothing is new. */
function follow(known, reader, found) {
  if (found === known.answer) return known.value;
  const news = mapOf(found.metrics.series),
    fresh = news.size > 0,
    text = JSON.stringify(found.run);
  const changed =
    !known.value || fresh || text !== known.text || found.log?.text || found.log?.complete !== known.complete;
  const series = fresh || !known.value ? joined(known.value?.series, news) : known.value.series;
  reader.append(found.log);
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
  const all = new Map(old);
  for (const [name, points] of more) all.set(name, [...(all.get(name) || []), ...points]);
  return all;
}

function useArtifacts(name, archived) {
  const [left, set] = useState(null);
  useEffect(() => {
    if (archived) get(["runs", name, "artifacts"], { pictures: "true" }).then(set, (fault) => set({ fault }));
  }, [name, archived]);
  return left;
}

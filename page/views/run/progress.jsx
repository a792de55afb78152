// Where a run is: why it waits, its phases, and the members of an elastic one over time.
import { begins, between, duration, inZone, money, shortClock, visible } from "../../format.js";
import { Advice, Drawing, State, When } from "../../parts.jsx";
import { own } from "../../own.js";
import { ended } from "../../record.js";
import { W } from "../../words.js";

export const isOver = (run) => ended(run) && Boolean(run.archived_at || run.gave_up_at);

/** @typedef {import("../../../schemas/answers.d.ts").Live["run"]} RunAnswer */

/** @param {{ run: RunAnswer }} props */
export function Why({ run }) {
  const waits = ["received", "submitted", "queued"].includes(run.state),
    why = (waits && run.waiting?.why) || run.reason || (waits ? run.history.at(-1)?.why : ""),
    azure = waits && run.waiting?.words;
  if (!why) return null;
  return (
    <div class={`notice ${run.state === "failed" ? "bad" : ""}`}>
      <b>{waits ? W.run.waits : W.run.reason}</b>
      {run.diagnosis && (
        <>
          <p>{visible(run.diagnosis.summary)}</p>
          <Advice steps={run.diagnosis.advice} />
        </>
      )}
      <div class="reason" tabindex={0} role="region" aria-label={W.run.reason}>
        {inZone(why)}
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
          <When at={run.waiting.since} /> {begins(run.waiting)}
        </>
      )}
    </div>
  );
}

/** @param {RunAnswer} run */
const ailments = (run) => (run.state === "running" ? (run.health?.ailments ?? []) : []);

/**
 * What is wrong with a running run: the causes, their evidence, and what to do.
 * @param {{ run: RunAnswer }} props
 */
export function Sick({ run }) {
  const found = ailments(run);
  if (!found.length) return null;
  return (
    <div class="notice bad" role="status">
      <b>{W.run.sick}</b>
      {found.map((each) => (
        <div key={each.cause + each.name}>
          <p>{visible(each.summary)}</p>
          <Advice steps={each.advice} />
          <details>
            <summary>{W.run.evidence}</summary>
            {each.evidence.map((line) => (
              <div key={line}>{visible(line)}</div>
            ))}
          </details>
        </div>
      ))}
    </div>
  );
}

/**
 * [{ name, seconds }] in the order in which they were: the same state twice is one phase each time.
 * @param {RunAnswer} run
 */
function phases(run) {
  const now = isOver(run) ? null : undefined,
    moments = run.history,
    found = [];
  moments.forEach((moment, i) => {
    if (!own(W.run.phaseNames, moment.state)) return;
    const seconds = between(moment.at, moments[i + 1]?.at ?? now),
      phase = { name: moment.state, seconds, active: i === moments.length - 1 };
    if (moment.state === "running" && run.steps.length) found.push(...trainingOf(run.steps, phase));
    else if (unseen(run, moments, i)) found.push({ ...phase, name: "unseen" });
    else found.push(phase);
  });
  if (ended(run))
    found.push({
      name: "archive",
      seconds: between(moments.at(-1).at, run.archived_at ?? run.gave_up_at ?? undefined),
      active: !run.archived_at && !run.gave_up_at,
    });
  return found.filter(({ seconds }) => Number.isFinite(seconds));
}

/** Whether the run failed so soon that nobody saw it run: how long it waited is unknown. */
const unseen = (run, moments, i) =>
  run.state === "failed" &&
  ["submitted", "queued"].includes(moments[i].state) &&
  moments[i + 1]?.state === "failed" &&
  !moments.some((moment) => moment.state === "running");

/** Of a pipeline that runs: the seconds in which a step ran, and those in which all steps waited for nodes. */
function trainingOf(steps, phase) {
  const spans = steps
    .filter((step) => step.began)
    .map((step) => [new Date(step.began).getTime(), new Date(step.ended ?? Date.now()).getTime()])
    .sort((a, b) => a[0] - b[0]);
  let until = 0,
    ran = 0;
  for (const [from, to] of spans) {
    ran += Math.max(0, to - Math.max(from, until)) / 1000;
    until = Math.max(until, to);
  }
  ran = Math.min(ran, phase.seconds);
  return [
    { name: "queued", seconds: phase.seconds - ran, active: false },
    { ...phase, seconds: ran },
  ];
}

export function Phases({ run }) {
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

const LABELS = 88,
  LINE = 22; // pixels: room for what a line of the timeline is called, and its height

/**
 * Nodes over time as an area, and under it a bar for each member's present job.
 * @param {{ run: RunAnswer }} props
 */
export function Members({ run }) {
  const { members, sizes } = run.elastic;
  const late = (/** @type {number} */ number) =>
    ailments(run).find((each) => each.name === `member ${number}`)?.summary;
  const changes = sizes.map((size) => `${shortClock(size.at)} ${W.run.nodesNow(size.nodes)}`);
  const summary = `${W.run.timeline}: ${changes.join(", ")}`;
  return (
    <>
      <ul class="lines">
        {members.map((member) => (
          <li key={member.member}>
            {W.run.member(member.member)} <State state={member.state} />{" "}
            <span class="dim">
              {W.run.attempt(member.attempt)}
              {member.cost ? ` · ${money(member.cost)}` : ""}
              {member.why ? ` · ${visible(member.why.split("\n")[0])}` : ""}
            </span>
            {late(member.member) && <strong> {visible(late(member.member) ?? "")}</strong>}
          </li>
        ))}
      </ul>
      <Drawing label={summary} height={74 + LINE * members.length} draw={(width) => life(run, width)} />
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

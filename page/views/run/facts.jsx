// What is known of a run: its facts, notes, tags and history.
import { post } from "../../api.js";
import { useDraft } from "../../drafts.js";
import { beside, clock, duration, inZone, metric, money, share, visible } from "../../format.js";
import { ordered } from "../../metric.js";
import { mapOf } from "../../own.js";
import { Facts, State, useOutcome, When } from "../../parts.jsx";
import { cost, ended, runSeconds } from "../../record.js";
import { to } from "../../route.js";
import { W } from "../../words.js";
import { useRef } from "preact/hooks";

const FIELDS = ["experiment", "route", "cluster", "nodes", "attempts", "trained_on", "data_note", "archive_error"];

const OF_NODES = ["cluster", "nodes"]; // which a sweep's trials have, and not it

const IDENTITY = ["job", "code", "environment", "output", "fingerprint"]; // long, and seldom looked at

const MOMENTS = ["created_at", "archived_at", "cancel_asked_at", "gave_up_at"];

/** Where a run with a date stands against the least that keeps it. */
function Standing({ date }) {
  const words = W.run.doneShare(share(date.done_share), share(date.line_share));
  return (
    <>
      <meter min="0" max="1" low={date.line_share} value={date.done_share} aria-label={words} /> {words}
    </>
  );
}

/**
 * @typedef {import("../../../schemas/answers.d.ts").Live["run"]} RunAnswer
 * @param {{ run: RunAnswer, usage: import("../../../schemas/answers.d.ts").NodeUsageAnswer | null }} props
 */
export function What({ run, usage }) {
  const f = W.run.fields,
    known = (name) => [f[name], run[name] === null || run[name] === undefined ? "" : String(run[name])];
  const ofModel = modelMetrics(run);
  return (
    <>
      <Facts
        rows={[
          [W.runs.ofModel, ofModel],
          [
            W.run.parameters,
            Object.entries(run.parameters || {})
              .map(([name, value]) => `${name}=${value}`)
              .join(", "),
          ],
          [W.run.cost, costWords(run)],
          [W.run.trialOf, run.trial && <a href={to("run", [run.trial.sweep])}>{visible(run.trial.sweep)}</a>],
          [
            f.drop,
            run.drop && (
              <>
                <a href={to("drops", run.drop.split("/"))}>{visible(run.drop)}</a>
                {run.generation ? ` ${W.run.generation(run.generation)}` : ""}
              </>
            ),
          ],
          [
            W.run.doneBy,
            run.date && (
              <>
                {clock(run.date.done_by)} {run.date.late_since && <strong>{W.run.late}</strong>}
                <small>
                  <Standing date={run.date} />
                </small>
                <small>{visible(run.date.holds_why)}</small>
              </>
            ),
          ],
          [W.run.continues, run.continues && <a href={to("run", [run.continues])}>{visible(run.continues)}</a>],
          [W.run.fromRun, run.from_run && <a href={to("run", [run.from_run])}>{visible(run.from_run)}</a>],
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
          ...FIELDS.filter((name) => !run.sweep || !OF_NODES.includes(name)).map((name) =>
            name === "nodes" && run.elastic ? [f.nodes, W.run.range(run.elastic.min_nodes, run.nodes)] : known(name),
          ),
          [f.resubmissions, run.elastic && W.run.resubmissions(run.elastic.resubmitted, run.elastic.resubmissions)],
          [f.deadline, run.elastic && clock(run.elastic.deadline)],
          [W.usage.used, usage?.sentence],
          [W.usage.advice, usage?.advice],
          ...Object.entries(run.labeled || {}),
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
          [W.runs.took, runSeconds(run) === null ? "" : duration(runSeconds(run))],
        ]}
      />
      <details>
        <summary>{W.run.identity}</summary>
        <Facts rows={IDENTITY.map(known)} />
      </details>
    </>
  );
}

/**
 * The metrics of the saved model, those that the run is judged by first.
 * @param {RunAnswer} run
 */
function modelMetrics(run) {
  const m = run.metrics,
    [values, best, steps] = [m.of_model, m.best, m.best_steps].map((each) =>
      mapOf(/** @type {Record<string, number>} */ (each)),
    ),
    names = [...new Set([run.best?.metric, ...ordered([...values.keys()])])].filter((name) => values.has(name));
  const words = names.slice(0, 3).map((name) => {
    const seen = best.has(name) && best.get(name) !== values.get(name);
    const also = seen ? ` (${W.runs.seen(metric(name, best.get(name)), steps.get(name))})` : "";
    return `${name} ${metric(name, values.get(name))}${also}`;
  });
  return words.join(", ") + (words.length && !m.by_trainer.length ? `; ${W.runs.lastValues}` : "");
}

/**
 * Dollars so far, of the greatest that the run may cost.
 * @param {RunAnswer} run
 */
function costWords(run) {
  const so_far = run.sweep ? run.sweep.trials_dollars : cost(run),
    most = run.greatest_cost === null || run.greatest_cost === undefined ? "" : W.run.atMost(money(run.greatest_cost));
  if (so_far === null) return most;
  const unpriced = run.cost?.unpriced ? W.run.unpriced : "";
  return `${money(so_far)}${ended(run) || !most ? "" : `, ${most}`}${unpriced}`;
}

export function Notes({ run, me, again }) {
  const [outcome, attempt] = useOutcome(),
    [text, write] = useDraft(`note/${run.run}`);
  const submit = async (event) => {
    event.preventDefault();
    if (await attempt(async () => void (await post(["runs", run.run, "notes"], { text })))) {
      write("");
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
            <input
              value={text}
              onInput={(e) => write(e.currentTarget.value)}
              maxlength={500}
              placeholder={W.run.note}
              required
            />
          </label>
          <button type="submit">{W.run.addNote}</button>
        </form>
      )}
      {outcome}
    </>
  );
}

/** The tags, each with what takes it off, and a line that sets one. The project stays: it says who pays. */
export function Tags({ run, again }) {
  const [outcome, attempt] = useOutcome(),
    field = useRef(null);
  const change = (wanted, said) =>
    attempt(async () => {
      await post(["runs", run.run, "tags"], wanted);
      again();
      return said;
    });
  const removeTag = async (name) => {
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
                  onClick={() => removeTag(name)}
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

export const Audit = ({ run }) => (
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

/** The states of the run in order of time, and of an elastic run each job that lost its node. */
export const History = ({ run }) => (
  <ol class="history">
    {moments(run).map((moment, i) => (
      <li key={i}>
        <time datetime={moment.at} class="dim">
          {beside(moment.at, run.created_at)}
        </time>
        <span>
          <State state={moment.state} />
        </span>
        {moment.why && <span class="why">{inZone(moment.why.split("\n")[0])}</span>}
      </li>
    ))}
  </ol>
);

/** @param {RunAnswer} run */
function moments(run) {
  const losses = (run.elastic?.losses || []).map(({ at, job, why }) => ({
    at,
    state: "lost",
    why: `${job.startsWith(`${run.run}-`) ? job.slice(run.run.length + 1) : job}: ${why}`,
  }));
  return [...run.history, ...losses].sort((a, b) => new Date(a.at).getTime() - new Date(b.at).getTime());
}

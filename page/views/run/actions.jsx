// What can be done with a run: compare, cancel, go on, retry; and the commands that do it in a terminal.
import { post } from "../../api.js";
import { money, shell } from "../../format.js";
import { Ask, useOutcome } from "../../parts.jsx";
import { ended } from "../../record.js";
import { to } from "../../route.js";
import { W } from "../../words.js";
import { useState } from "preact/hooks";

export function Actions({ run, me, again }) {
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
        {me.may_change && ended(run) && run.archived_at && <Continue run={run} attempt={attempt} />}
        {me.may_change && ended(run) && (
          <Ask
            label={W.run.retry}
            question={W.run.retryAsk(run.greatest_cost === null ? "" : W.run.atMost(money(run.greatest_cost)))}
            yes={W.run.retryYes}
            no={W.run.no}
            act={retry}
            kind="primary"
          />
        )}
      </div>
      {outcome}
    </>
  );
}

/** Go on from the newest checkpoint, perhaps with other parameters: more epochs, say. */
function Continue({ run, attempt }) {
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
        {W.run.resume}
      </button>
    );
  return (
    <form class="inline" onSubmit={submit}>
      <label>
        {W.run.continueWith}
        <input name="parameters" placeholder="epochs=20" defaultValue={epochs ? `epochs=${2 * epochs}` : ""} />
      </label>
      <button type="submit">{W.run.resume}</button>
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

export function commands(run) {
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

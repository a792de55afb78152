// What can be done with a run: compare, cancel, go on, retry; and the commands that do it in a terminal.
import { post } from "../../api.js";
import { money, shell } from "../../format.js";
import { Ask, Unfolding, useOutcome } from "../../parts.jsx";
import { ended } from "../../record.js";
import { parameters } from "../../request.js";
import { to } from "../../route.js";
import { W } from "../../words.js";
import { useRef, useState } from "preact/hooks";

/**
 * @param {{ run: import("../../../schemas/answers.d.ts").Live["run"], me: import("../../app.jsx").Me,
 *   again: () => void }} props
 */
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
        {me.may_change && run.state === "completed" && run.archived_at && <Promote run={run} attempt={attempt} />}
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

/** Make the run's model the next version of a model, and move an alias to it. */
function Promote({ run, attempt }) {
  const [model, setModel] = useState(""),
    [alias, setAlias] = useState(""),
    why = useRef(null);
  const promote = (close) =>
    attempt(async () => {
      const body = { run: run.run, alias: alias.trim(), why: why.current.value };
      const made = await post(["models", model.trim(), "versions"], body);
      close();
      return W.run.promoted(model.trim(), made.number);
    });
  return (
    <Unfolding label={W.run.promote}>
      {(close) => (
        <>
          <label>
            {W.run.model}
            <input value={model} onInput={(e) => setModel(e.currentTarget.value)} placeholder="digits" />
          </label>
          <label>
            {W.run.alias}
            <input value={alias} onInput={(e) => setAlias(e.currentTarget.value)} placeholder="production" />
          </label>
          <label>
            {W.run.because}
            <input ref={why} maxlength={200} />
          </label>
          <Ask
            label={W.run.promote}
            question={W.run.promoteAsk(model, alias.trim())}
            yes={W.run.promoteYes}
            no={W.run.no}
            act={() => promote(close)}
            kind="primary"
          />
        </>
      )}
    </Unfolding>
  );
}

/** Train on from the newest checkpoint, perhaps with other parameters: more epochs, say. */
function Continue({ run, attempt }) {
  const epochs = run.state === "completed" && run.parameters?.epochs;
  const submit = (fields) =>
    attempt(async () => {
      const made = await post(["runs", run.run, "continue"], { parameters: parameters(fields.parameters.value) });
      location.hash = to("run", [made.run]);
      return W.run.retried(made.run);
    });
  return (
    <Unfolding label={W.run.resume} submit={submit}>
      {() => (
        <>
          <label>
            {W.run.continueWith}
            <input name="parameters" placeholder="epochs=20" defaultValue={epochs ? `epochs=${2 * epochs}` : ""} />
          </label>
          <button type="submit">{W.run.resume}</button>
        </>
      )}
    </Unfolding>
  );
}

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

// Submit a run, or a schedule that makes runs: first what it would be and cost at most, then one question.
import { get, post } from "../api.js";
import { useDraft } from "../drafts.js";
import { money, visible } from "../format.js";
import { Ask, Trouble, useOutcome } from "../parts.jsx";
import { request } from "../request.js";
import { to } from "../route.js";
import { W } from "../words.js";
import { useEffect, useState } from "preact/hooks";

const S = W.submit;

export function Submit({ route, me }) {
  const [choices, setChoices] = useState(/** @type {string[][] | undefined} */ (undefined)),
    [error, setError] = useState(null),
    [plan, setPlan] = useState(null), // { body, where, answer } of the last check
    [job, writeJob] = useDraft("job"),
    [outcome, attempt] = useOutcome();
  useEffect(() => {
    Promise.all([get(["trainers"]), get(["routes"])]).then(([trainers, routes]) => {
      const trained = routes.filter((one) => one.trains);
      setChoices([
        ...trainers.map((one) => [`trainer:${one.trainer}`, S.trainer(one.trainer)]),
        ...trained.map((one) => [`template:${one.route}`, S.route(one.route)]),
        ["job:", S.job],
      ]);
    }, setError);
  }, []);
  if (!me.may_change) return <Frame>{<p class="notice">{W.readonly}</p>}</Frame>;
  const check = (event) => {
    event.preventDefault();
    const given = Object.fromEntries([...new FormData(event.target)].map(([name, value]) => [name, String(value)]));
    setPlan(null);
    attempt(async () => {
      const body = request(given),
        where = given.cron ? "schedules" : "runs";
      setPlan({ body, where, answer: await post([where], body, { dry_run: "true" }) });
    });
  };
  const submit = () =>
    attempt(async () => {
      const made = await post([plan.where], plan.body);
      writeJob("");
      location.hash = plan.body.cron ? to("schedules") : to("run", [made.run]);
    });
  return (
    <Frame>
      <Trouble error={error} value={choices} />
      {choices && (
        <form class="submit" onSubmit={check} onInput={() => setPlan(null)}>
          <Fields choices={choices} query={route.query} job={job} writeJob={writeJob} />
          <button type="submit">{S.check}</button>
        </form>
      )}
      {outcome}
      {plan && <Plan plan={plan} submit={submit} />}
    </Frame>
  );
}

const Frame = ({ children }) => (
  <section>
    <h1 tabindex={-1}>{S.title}</h1>
    {children}
  </section>
);

function Fields({ choices, query, job, writeJob }) {
  const [what, setWhat] = useState(choices[0][0]);
  return (
    <>
      <label>
        {S.what}
        <select name="what" value={what} onChange={(e) => setWhat(e.currentTarget.value)}>
          {choices.map(([value, name]) => (
            <option key={value} value={value}>
              {visible(name)}
            </option>
          ))}
        </select>
      </label>
      {what === "job:" && (
        <label>
          {S.document}
          <textarea
            name="job"
            rows={10}
            spellcheck={false}
            value={job}
            onInput={(e) => writeJob(e.currentTarget.value)}
            required
          />
        </label>
      )}
      {["data", "parameters", "nodes", "cluster", "cron", "timezone"].map((name) => (
        <label key={name}>
          {S.fields[name]}
          <input
            name={name}
            placeholder={S.hints[name]}
            defaultValue={query[name] || (name === "timezone" ? Intl.DateTimeFormat().resolvedOptions().timeZone : "")}
          />
        </label>
      ))}
    </>
  );
}

/** What the API says of the request: why it could not start now, the greatest cost, and the one question. */
function Plan({ plan, submit }) {
  const { reasons, cost } = plan.answer,
    most = cost?.greatest ?? null;
  return (
    <section class="card spaced">
      <h2>{S.plan}</h2>
      {reasons.length > 0 && (
        <ul class="findings">
          {reasons.map((reason) => (
            <li key={reason.message}>{visible(reason.message)}</li>
          ))}
        </ul>
      )}
      {!plan.body.cron && <p>{most === null ? S.noPrice : S.most(money(most))}</p>}
      <details>
        <summary>{S.document}</summary>
        <pre class="reason">{visible(JSON.stringify(plan.answer.job, null, 2))}</pre>
      </details>
      <Ask
        label={plan.body.cron ? S.schedule : S.submit}
        question={plan.body.cron ? S.scheduleAsk : S.ask(most === null ? "" : W.run.atMost(money(most)))}
        yes={S.yes}
        no={W.run.no}
        act={submit}
        kind="primary"
      />
    </section>
  );
}

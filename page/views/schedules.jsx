// What makes runs by itself, and who is told of what.
import { get, post, remove } from "../api.js";
import { clock, count, visible } from "../format.js";
import { useRef, useState } from "preact/hooks";
import { useLive } from "../live.js";
import { Ask, Command, Trouble, useOutcome } from "../parts.jsx";
import { to } from "../route.js";
import { W } from "../words.js";

const STATES = { started: "completed", failed: "failed" }; // of a firing, drawn as those of a run

export function Schedules({ me }) {
  const turn = useRef(0),
    known = useRef({ schedules: null, notices: null });
  // The first look asks for both; then each look asks for one of them, by turns.
  const { value, error, again } = useLive(
    async (signal) => {
      const first = turn.current++ === 0,
        odd = turn.current % 2 === 1,
        before = known.current;
      const [schedules, notices] = await Promise.all([
        first || odd ? get(["schedules"], {}, { signal }) : before.schedules,
        first || !odd ? get(["notices"], {}, { signal }) : before.notices,
      ]);
      if (schedules !== before.schedules || notices !== before.notices) known.current = { schedules, notices };
      return known.current;
    },
    [],
    { soon: 4000 },
  );
  const anew = () => {
    turn.current = 0;
    again();
  };
  return (
    <section>
      <h1 tabindex={-1}>{W.schedules.title}</h1>
      {error && value && (
        <p class="notice bad" role="alert">
          {visible(error.message)}
        </p>
      )}
      <Trouble error={error} value={value} />
      {value && (
        <>
          {me.may_change && (
            <p>
              <a class="button" href={to("submit", [], { cron: "0 6 * * 1" })}>
                {W.schedules.add}
              </a>
            </p>
          )}
          {value.schedules.length === 0 && (
            <div class="notice">
              <p>{W.schedules.empty}</p>
              <Command text={W.schedules.emptyCommand} />
            </div>
          )}
          {value.schedules.map((schedule) => (
            <One key={schedule.id} schedule={schedule} me={me} again={anew} />
          ))}
          <section class="part spaced">
            <h2>{W.notices.title}</h2>
            {me.may_change && <Notify again={anew} />}
            <Notices list={value.notices} me={me} again={anew} />
          </section>
        </>
      )}
    </section>
  );
}

/**
 * What a schedule's request trains, in a few words.
 * @param {Record<string, any>} request
 */
const trains = ({ trainer, template, data }) =>
  [trainer || template || W.schedules.aJob, data].filter(Boolean).join(" · ");

/**
 * @param {{ schedule: import("../../schemas/answers.d.ts").ScheduleAnswer, me: import("../app.jsx").Me,
 *   again: () => void }} props
 */
function One({ schedule, me, again }) {
  const [outcome, attempt] = useOutcome(),
    act = (what, said) =>
      attempt(async () => {
        await what();
        again();
        return said;
      });
  const when = schedule.cron ? (
    <>
      <code>{visible(schedule.cron)}</code> {visible(schedule.timezone)}
    </>
  ) : (
    W.schedules.files(count(schedule.new_files), visible(schedule.route))
  );
  return (
    <section class="card">
      <div class="head">
        <h2>{visible(trains(schedule.request))}</h2>
        {schedule.paused && <span class="state">{W.schedules.paused}</span>}
        {me.may_change && (
          <div class="actions">
            <button
              type="button"
              onClick={() =>
                act(
                  () => post(["schedules", schedule.id, schedule.paused ? "resume" : "pause"]),
                  schedule.paused ? W.schedules.resumed : W.schedules.pausedNow,
                )
              }
            >
              {schedule.paused ? W.schedules.resume : W.schedules.pause}
            </button>
            <Ask
              label={W.schedules.end}
              question={W.schedules.endAsk}
              yes={W.schedules.endYes}
              no={W.run.no}
              act={() => act(() => remove(["schedules", schedule.id]), W.schedules.ended)}
              kind="danger"
            />
          </div>
        )}
      </div>
      {outcome}
      <dl class="facts">
        <div>
          <dt>{W.schedules.when}</dt>
          <dd>{when}</dd>
        </div>
        {schedule.next_at && !schedule.paused && (
          <div>
            <dt>{W.schedules.next}</dt>
            <dd>{clock(schedule.next_at)}</dd>
          </div>
        )}
        {schedule.last_run && (
          <div>
            <dt>{W.schedules.last}</dt>
            <dd>
              <a href={to("run", [schedule.last_run])}>{visible(schedule.last_run)}</a>
            </dd>
          </div>
        )}
        {schedule.owner && (
          <div>
            <dt>{W.run.fields.owner}</dt>
            <dd>{visible(schedule.owner)}</dd>
          </div>
        )}
      </dl>
      <Firings of={schedule.id} />
    </section>
  );
}

function Firings({ of }) {
  const [list, set] = useState(null),
    show = (open) => open && get(["schedules", of, "firings"]).then(set, () => set([]));
  return (
    <details onToggle={(e) => show(e.currentTarget.open)}>
      <summary>{W.schedules.firings}</summary>
      {list?.length === 0 && <p class="dim">{W.schedules.none}</p>}
      {list?.length > 0 && (
        <ul class="lines">
          {list.map((one) => (
            <li key={one.at}>
              <span class="dim">{clock(one.at)}</span>{" "}
              <span class={`state ${STATES[one.outcome] || "canceled"}`}>
                {W.schedules.outcomes[one.outcome] || visible(one.outcome)}
              </span>{" "}
              {one.run && <a href={to("run", [one.run])}>{visible(one.run)}</a>} {visible(one.why)}
            </li>
          ))}
        </ul>
      )}
    </details>
  );
}

const KINDS = ["failed", "completed", "canceled"];

/** Who is notified of which ends of runs. */
function Notify({ again }) {
  const [outcome, attempt] = useOutcome();
  const add = (event) => {
    event.preventDefault();
    const form = event.target,
      on = KINDS.filter((kind) => form.elements[kind].checked);
    attempt(async () => {
      await post(["notices"], { on, to: form.elements.to.value.trim() });
      form.reset();
      again();
      return W.notices.added;
    });
  };
  return (
    <details>
      <summary>{W.notices.add}</summary>
      <form class="bar" onSubmit={add}>
        <label>
          {W.notices.address}
          <input name="to" required minlength={3} />
        </label>
        {KINDS.map((kind) => (
          <label class="check" key={kind}>
            <input type="checkbox" name={kind} defaultChecked={kind === "failed"} />
            {W.states[kind]}
          </label>
        ))}
        <button type="submit">{W.notices.add}</button>
      </form>
      {outcome}
    </details>
  );
}

/**
 * @param {{ list: import("../../schemas/answers.d.ts").SubscriptionAnswer[], me: import("../app.jsx").Me,
 *   again: () => void }} props
 */
function Notices({ list, me, again }) {
  const [outcome, attempt] = useOutcome(),
    act = (what, said) =>
      attempt(async () => {
        await what();
        again();
        return said;
      });
  if (!list.length)
    return (
      <div class="notice">
        <p>{W.notices.empty}</p>
        <Command text={W.notices.emptyCommand} />
      </div>
    );
  return (
    <>
      {outcome}
      <div class="scroll" tabindex={0} role="region" aria-label={W.notices.title}>
        <table class="plain">
          <thead>
            <tr>
              <th scope="col">{W.notices.to}</th>
              <th scope="col">{W.notices.on}</th>
              <th scope="col" class="wide">
                {W.notices.of}
              </th>
              <th scope="col" class="wide">
                {W.run.fields.owner}
              </th>
              <th scope="col">
                <span class="sr">{W.notices.test}</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {list.map((one) => (
              <tr key={one.id}>
                <th scope="row">
                  {visible(one.to)}
                  <small>{visible(one.channel)}</small>
                </th>
                <td>{one.on.map(visible).join(", ")}</td>
                <td class="wide">{visible(one.route || one.experiment || W.all)}</td>
                <td class="wide">{visible(one.owner)}</td>
                <td class="number">
                  {me.may_change && (
                    <>
                      <button
                        type="button"
                        class="small"
                        onClick={() => act(() => post(["notices", one.id, "test"]), W.notices.tested)}
                      >
                        {W.notices.test}
                      </button>{" "}
                      <Ask
                        label={W.notices.end}
                        question={W.notices.endAsk}
                        yes={W.notices.endYes}
                        no={W.run.no}
                        act={() => act(() => remove(["notices", one.id]), W.notices.ended)}
                      />
                    </>
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

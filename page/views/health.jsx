// What answers, what waits, and what was set aside.
import { get, post } from "../api.js";
import { count, visible } from "../format.js";

import { useLive } from "../live.js";
import { Ask, Command, Trouble, useOutcome } from "../parts.jsx";
import { W } from "../words.js";

/** @param {{ me: { may_change: boolean } }} props */
export function Health({ me }) {
  const { value, error, again } = useLive((signal) => get(["status"], {}, { signal }), [], { soon: 5000 });
  return (
    <section>
      <h1 tabindex={-1}>{W.health.title}</h1>
      {error && value && (
        <p class="notice bad" role="alert">
          {visible(error.message)}
        </p>
      )}
      <Trouble error={error} value={value} />
      {value && <Shown value={value} me={me} again={again} />}
    </section>
  );
}

/**
 * @param {{ value: import("../../schemas/answers.d.ts").Status, me: { may_change: boolean },
 *   again: () => void }} props
 */
function Shown({ value, me, again }) {
  const [outcome, attempt] = useOutcome(),
    aside = Object.entries(value.poison),
    known = value.checks.storage === "ok";
  const replay = (/** @type {string} */ queue) =>
    attempt(async () => {
      const done = await post(["queues", queue, "replay"]);
      again();
      return W.health.replayed(done.messages);
    });
  return (
    <>
      {outcome}
      <section class="card">
        <h2>{W.health.checks}</h2>
        <ul>
          {Object.entries(value.checks).map(([name, said]) => (
            <li key={name}>
              {name}:{" "}
              <span class={`state ${said === "ok" ? "completed" : "failed"}`}>
                {said === "ok" ? W.health.ok : visible(said)}
              </span>
            </li>
          ))}
        </ul>
      </section>
      {!known && <p class="notice">{W.health.unknown}</p>}
      {known && <Queues value={value} me={me} replay={replay} />}
      {known && <Poison aside={aside} />}
    </>
  );
}

/**
 * @param {{ value: import("../../schemas/answers.d.ts").Status, me: { may_change: boolean },
 *   replay: (queue: string) => unknown }} props
 */
function Queues({ value, me, replay }) {
  return (
    <section class="card">
      <h2>{W.health.queues}</h2>
      <div class="scroll whole" tabindex={0} role="region" aria-label={W.health.queues}>
        <table>
          <thead>
            <tr>
              <th scope="col">{W.health.queue}</th>
              <th scope="col" class="number">
                {W.health.waiting}
              </th>
              <th scope="col" class="number">
                {W.health.poison}
              </th>
              <th scope="col">
                <span class="sr">{W.health.replay}</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {Object.entries(value.queues).map(([name, queue]) => (
              <tr key={name}>
                <th scope="row">{name}</th>
                <td class="number">{count(queue.messages)}</td>
                <td class="number">{queue.poison ? <span class="state failed">{count(queue.poison)}</span> : "0"}</td>
                <td>
                  {queue.poison > 0 && me.may_change && (
                    <Ask
                      label={W.health.replay}
                      question={W.health.replayAsk(count(queue.poison), name)}
                      yes={W.health.replayYes}
                      no={W.run.no}
                      act={() => replay(name)}
                    />
                  )}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

/** @param {{ aside: [string, string[]][] }} props */
function Poison({ aside }) {
  return (
    <section class="card">
      <h2>{W.health.set}</h2>
      {aside.length === 0 ? (
        <p class="dim">{W.health.fine}</p>
      ) : (
        <>
          <p>{W.health.advice}</p>
          <Command text="python3 trainyard.py admin replay --dry-run" />
          {aside.map(([queue, messages]) => (
            <>
              <h3 key={queue}>{queue}</h3>
              {messages.map((text, i) => (
                <pre key={i} class="reason" tabindex={0}>
                  {visible(text)}
                </pre>
              ))}
            </>
          ))}
        </>
      )}
    </section>
  );
}

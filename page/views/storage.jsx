// What takes the space, what goes next, and what went.
import { get } from "../api.js";
import { bytes, count, visible } from "../format.js";
import { useState } from "preact/hooks";
import { useLive } from "../live.js";
import { own } from "../own.js";
import { Command, Trouble, useOutcome, When } from "../parts.jsx";
import { to } from "../route.js";
import { W } from "../words.js";

export function Storage() {
  const { value, error } = useLive((signal) => get(["removals"], {}, { signal }), [], { soon: 10_000 });
  return (
    <section>
      <h1 tabindex={-1}>{W.storage.title}</h1>
      {error && value && (
        <p class="notice bad" role="alert">
          {visible(error.message)}
        </p>
      )}
      <Trouble error={error} value={value} />
      {value && (
        <>
          <section class="card">
            <h2>{W.storage.space}</h2>
            <Space />
          </section>
          <section class="card">
            <h2>{W.storage.soon}</h2>
            <Soon />
          </section>
          <section class="card">
            <h2>{W.storage.log}</h2>
            <Removed list={value} />
            <Command text={W.storage.command} />
          </section>
        </>
      )}
    </section>
  );
}

/** Counted when somebody asks: it lists all that storage has. */
function Space() {
  const [found, set] = useState(/** @type {import("../../schemas/answers.d.ts").UsageAnswer | null} */ (null)),
    [busy, work] = useState(false),
    [outcome, attempt] = useOutcome();
  const countUse = async () => {
    work(true);
    await attempt(async () => {
      set(await get(["usage"]));
    });
    work(false);
  };
  if (!found)
    return (
      <>
        <p class="dim">{W.storage.why}</p>
        <button type="button" disabled={busy} onClick={countUse}>
          {busy ? W.storage.counting : W.storage.count}
        </button>
        {outcome}
      </>
    );
  const all = Object.values(found.kinds).reduce((sum, size) => sum + size, 0);
  return (
    <>
      <p class="big">{bytes(all)}</p>
      {!found.complete && <p class="notice">{W.storage.partly}</p>}
      <ul class="bars">
        {Object.entries(found.kinds).map(([kind, size]) => (
          <li key={kind}>
            <span>{visible(own(W.storage.kinds, kind) || kind)}</span>
            <progress max={all || 1} value={size} aria-label={kind} />
            <b class="number">{bytes(size)}</b>
          </li>
        ))}
      </ul>
      <div class="scroll" tabindex={0} role="region" aria-label={W.storage.holders}>
        <table>
          <thead>
            <tr>
              <th scope="col">{W.storage.holders}</th>
              <th scope="col" class="wide">
                {W.storage.kind}
              </th>
              <th scope="col" class="number wide">
                {W.drops.files}
              </th>
              <th scope="col" class="number">
                {W.drops.size}
              </th>
            </tr>
          </thead>
          <tbody>
            {found.holders.map((one) => (
              <tr key={`${one.kind} ${one.name}`}>
                <th scope="row">{visible(one.name)}</th>
                <td class="wide">{visible(own(W.storage.kinds, one.kind) || one.kind)}</td>
                <td class="number wide">{count(one.files)}</td>
                <td class="number">{bytes(one.bytes)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

function Soon() {
  const { value, error } = useLive((signal) => get(["retention"], {}, { signal }), [], { still: () => true });
  if (!value) return <Trouble error={error} value={value} />;
  if (!value.length) return <p class="dim">{W.storage.nothingSoon}</p>;
  return (
    <ul class="lines">
      {value.map((one) => (
        <li key={`${one.what} ${one.name}`}>
          <b>{visible(one.name)}</b> {own(W.storage.whats, one.what) || visible(one.what)}, <Day at={one.at} />:{" "}
          {visible(one.why)}
        </li>
      ))}
    </ul>
  );
}

/** @param {{ at: string }} props */
const Day = ({ at }) => (
  <time datetime={at}>{new Date(at).toLocaleDateString(undefined, { dateStyle: "medium" })}</time>
);

/** @param {{ list: import("../../schemas/answers.d.ts").RemovalAnswer[] }} props */
function Removed({ list }) {
  if (!list.length) return <p class="dim">{W.storage.nothing}</p>;
  return (
    <div class="scroll" tabindex={0} role="region" aria-label={W.storage.log}>
      <table class="plain">
        <thead>
          <tr>
            <th scope="col">{W.storage.name}</th>
            <th scope="col">{W.drops.why}</th>
            <th scope="col" class="wide">
              {W.storage.by}
            </th>
            <th scope="col" class="number">
              {W.drops.size}
            </th>
            <th scope="col" class="number">
              {W.storage.when}
            </th>
          </tr>
        </thead>
        <tbody>
          {list.map((one) => (
            <tr key={`${one.asked_at} ${one.name}`}>
              <th scope="row">
                {one.what === "drop" ? visible(one.name) : <a href={to("run", [one.name])}>{visible(one.name)}</a>}
                <small>{own(W.storage.whats, one.what) || visible(one.what)}</small>
              </th>
              <td>{visible(one.why)}</td>
              <td class="wide">{visible(one.by)}</td>
              <td class="number">{one.done_at ? bytes(one.bytes) : W.storage.going}</td>
              <td class="number">
                <When at={one.asked_at} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

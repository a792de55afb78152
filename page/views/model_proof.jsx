// The proof of a version: its signer, each link of its origin as it is now, and the evidence that came later.
import { get } from "../api.js";
import { visible } from "../format.js";
import { useLive } from "../live.js";
import { own } from "../own.js";
import { Table, Trouble, useOutcome, When } from "../parts.jsx";
import { W } from "../words.js";
import { useState } from "preact/hooks";

const SHADES = { good: "completed", bad: "failed", unknown: "queued" }; // as the states of runs are shaded

/**
 * Nothing is requested before somebody opens the proof: the app then compares every file of the version.
 * @param {{ model: import("../../schemas/answers.d.ts").ModelPage }} props
 */
export function Proof({ model }) {
  const [open, set] = useState(false),
    [number, choose] = useState(String(model.versions[0].number));
  return (
    <details onToggle={(event) => set(event.currentTarget.open)}>
      <summary>{W.models.proof}</summary>
      <label>
        {W.models.version}
        <select value={number} onChange={(event) => choose(event.currentTarget.value)}>
          {model.versions.map((each) => (
            <option key={each.number} value={String(each.number)}>
              {each.number}
            </option>
          ))}
        </select>
      </label>
      {open && <OfVersion key={number} model={model.model} number={number} />}
    </details>
  );
}

/** @param {{ model: string, number: string }} props */
function OfVersion({ model, number }) {
  const where = ["models", model, "versions", number],
    [outcome, attempt] = useOutcome();
  const { value, error } = useLive(
    (signal) =>
      Promise.all([
        get([...where, "why"], {}, { signal }),
        get([...where, "attestations"], {}, { signal }),
        get(["model-key"], {}, { signal }),
      ]),
    [model, number],
    { still: () => true },
  );
  if (!value) return <Trouble error={error} value={value} />;
  const [chain, attested, { keys }] = value,
    signer = keys.find((key) => key.sha256 === chain.version.signer);
  const card = () =>
    attempt(async () => location.assign((await get([...where, "files", "README.md"], { link: "true" })).url));
  return (
    <>
      <dl class="facts">
        <div>
          <dt>{W.models.signer}</dt>
          <dd>
            <code>{visible(chain.version.signer)}</code>
          </dd>
        </div>
        <div>
          <dt>{W.models.signsSince}</dt>
          <dd>{signer ? <When at={signer.since} /> : W.models.unknownKey}</dd>
        </div>
        {signer?.withdrawn_at && (
          <div>
            <dt>{W.models.withdrawn}</dt>
            <dd>
              <When at={signer.withdrawn_at} /> {visible(signer.why)}
            </dd>
          </div>
        )}
      </dl>
      <Table name={W.models.proof} columns={W.models.links} rows={chain.links.map(link)} />
      <h3>{W.models.evidence}</h3>
      {attested.length ? (
        <Table name={W.models.evidence} columns={W.models.attested} rows={attested.map(attestation)} />
      ) : (
        <p class="dim">{W.models.noEvidence}</p>
      )}
      <button type="button" class="quiet" onClick={card}>
        {W.models.card}
      </button>
      {outcome}
    </>
  );
}

const link = (/** @type {any} */ each) => [
  <span key="state" class={`state ${own(SHADES, each.state) || "queued"}`}>
    {visible(own(W.models.holds, each.state) || each.state)}
  </span>,
  visible(each.link),
  visible(each.says),
];

const attestation = (/** @type {any} */ each) => [
  visible(each.kind),
  each.problem ? W.models.doesNotCount : each.passed ? W.models.passed : W.models.failed,
  visible(each.problem || each.says),
  visible(each.by || each.signer.slice(0, 16)) + (each.of_app && !each.by_id ? ` ${W.models.notSignedIn}` : ""),
  each.problem ? visible(each.at) : <When key="at" at={each.at} />,
];

// The keys that sign models of this deployment: since when, until when, and which of them were withdrawn.
import { get } from "../api.js";
import { visible } from "../format.js";
import { useLive } from "../live.js";
import { Command, Copy, Facts, Trouble, When } from "../parts.jsx";
import { to } from "../route.js";
import { W } from "../words.js";

const K = W.keys;

export function Keys() {
  const { value, error } = useLive((signal) => get(["model-key"], {}, { signal }), [], { soon: 15_000 });
  return (
    <section>
      <h1 tabindex={-1}>{K.title}</h1>
      <p class="dim">
        {K.text} <a href={to("docs", ["models"])}>{K.docs}</a>
      </p>
      {error && value && (
        <p class="notice bad" role="alert">
          {visible(error.message)}
        </p>
      )}
      <Trouble error={error} value={value} />
      {value?.keys.map((key) => (
        <One key={key.sha256} signing={key} current={key.sha256 === value.sha256} />
      ))}
    </section>
  );
}

/** @param {{ signing: import("../../schemas/answers.d.ts").SigningKeyAnswer, current: boolean }} props */
function One({ signing, current }) {
  const withdrawn = signing.withdrawn_at !== null,
    state = withdrawn ? "withdrawn" : current ? "current" : "earlier";
  return (
    <section class="card">
      <div class="head">
        <h2>
          <code class="digest">{visible(signing.sha256)}</code>
        </h2>
        <span class={`state ${STATES[state]}`}>{K.states[state]}</span>
      </div>
      <Facts
        rows={[
          [K.since, <When at={signing.since} />],
          [K.until, signing.until && <When at={signing.until} />],
          [K.withdrawn, withdrawn && <When at={signing.withdrawn_at} />],
          [K.by, signing.by],
          [K.why, signing.why],
          [K.pem, <Copy text={signing.pem} />],
        ]}
      />
      {!withdrawn && <Command text={K.trust(signing.sha256)} />}
    </section>
  );
}

const STATES = { withdrawn: "failed", current: "completed", earlier: "" };

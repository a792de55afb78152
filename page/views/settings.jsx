// The deployment's settings: the values in use, and which of them are defaults. Secrets have no value here.
import { get } from "../api.js";
import { visible } from "../format.js";
import { useLive } from "../live.js";
import { Trouble } from "../parts.jsx";
import { to } from "../route.js";
import { W } from "../words.js";

const S = W.settings;

export function Settings() {
  const { value, error } = useLive((signal) => get(["settings"], {}, { signal }), [], { still: () => true });
  return (
    <section>
      <h1 tabindex={-1}>{S.title}</h1>
      <p class="dim">
        {S.text} <a href={to("docs", ["settings"])}>{S.docs}</a>
      </p>
      <Trouble error={error} value={value} />
      {value && <Table settings={value} />}
    </section>
  );
}

/** @param {{ settings: import("../../schemas/answers.d.ts").SettingAnswer[] }} props */
const Table = ({ settings }) => (
  <div class="scroll whole" tabindex={0} role="region" aria-label={S.title}>
    <table class="settings">
      <thead>
        <tr>
          <th scope="col">{S.name}</th>
          <th scope="col">{S.value}</th>
        </tr>
      </thead>
      <tbody>
        {settings.map((one) => (
          <tr key={one.name}>
            <th scope="row">
              <code>{visible(one.name)}</code>
              <small>{visible(one.about)}</small>
            </th>
            <td class="cell">
              <Value setting={one} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  </div>
);

/** @param {{ setting: import("../../schemas/answers.d.ts").SettingAnswer }} props */
function Value({ setting: { value, is_set: isSet, secret } }) {
  if (secret) return <span class="dim">{isSet ? S.secret : S.unset}</span>;
  if (!value) return <span class="dim">{S.unset}</span>;
  return (
    <>
      {visible(value)} {!isSet && <span class="dim">{S.standard}</span>}
    </>
  );
}

// What a document of Azure Batch AI becomes here, field by field. Nothing is made of it.
import { post } from "../api.js";
import { visible } from "../format.js";
import { useState } from "preact/hooks";
import { Command } from "../parts.jsx";
import { W } from "../words.js";

export function BatchAI() {
  const [found, set] = useState(/** @type {any} */ (null)),
    [fault, setFault] = useState("");
  const translate = async (/** @type {any} */ event) => {
    event.preventDefault();
    set(null);
    setFault("");
    try {
      set(await post(["imports"], { document: JSON.parse(event.target.elements.document.value) }));
    } catch (error) {
      setFault(
        error instanceof SyntaxError
          ? W.batchai.noJson(error.message)
          : String(error instanceof Error ? error.message : error),
      );
    }
  };
  return (
    <section>
      <h1 tabindex={-1}>{W.batchai.title}</h1>
      <p>{W.batchai.text}</p>
      <form class="stack" onSubmit={translate}>
        <label>
          {W.batchai.document}
          <textarea name="document" rows={10} class="mono" spellcheck={false} required />
        </label>
        <div>
          <button type="submit">{W.batchai.translate}</button>
        </div>
      </form>
      {fault && (
        <p class="notice bad" role="alert">
          {visible(fault)}
        </p>
      )}
      {found && <Report found={found} />}
    </section>
  );
}

/** @param {{ found: any }} props an answer of `POST imports` */
function Report({ found }) {
  const made = found.job || found.compute || found.project;
  return (
    <section class="part spaced" role="status">
      <h2>{W.batchai.report}</h2>
      {found.reasons.map((/** @type {{ code: string, message: string }} */ reason) => (
        <p key={reason.code} class="notice bad">
          {visible(reason.message)}
        </p>
      ))}
      {found.report.length === 0 && <p class="dim">{W.batchai.same}</p>}
      {found.report.length > 0 && (
        <div class="scroll tall" tabindex={0} role="region" aria-label={W.batchai.report}>
          <table class="plain">
            <thead>
              <tr>
                <th scope="col">{W.batchai.field}</th>
                <th scope="col">{W.batchai.meant}</th>
                <th scope="col">{W.batchai.instead}</th>
                <th scope="col">{W.batchai.decide}</th>
              </tr>
            </thead>
            <tbody>
              {found.report.map((/** @type {Record<string, string>} */ one) => (
                <tr key={one.field}>
                  <th scope="row">
                    {visible(one.field)}
                    {one.lossy && (
                      <small>
                        <span class="state failed">{W.batchai.lossy}</span>
                      </small>
                    )}
                  </th>
                  <td>{visible(one.meant)}</td>
                  <td>{visible(one.instead)}</td>
                  <td>{visible(one.decide)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {made && (
        <details>
          <summary>{W.batchai.made}</summary>
          <pre class="reason" tabindex={0}>
            {visible(JSON.stringify(made, null, 2))}
          </pre>
        </details>
      )}
      <Command text="python3 trainyard.py import job.json --cluster NAME" />
    </section>
  );
}

// The pictures and files that a run left.
import { get } from "../../api.js";
import { bytes, visible } from "../../format.js";
import { Trouble, useOutcome } from "../../parts.jsx";
import { W } from "../../words.js";

/** @param {{ pictures: Record<string, string> }} props addresses by name */
export const Pictures = ({ pictures }) => (
  <div class="pictures">
    {Object.entries(pictures).map(([name, url]) => (
      <figure key={name}>
        <img src={url} alt={visible(name)} crossorigin="anonymous" loading="lazy" />
        <figcaption>{visible(name)}</figcaption>
      </figure>
    ))}
  </div>
);

/**
 * `left` is what the run left, or the fault of asking for it.
 * @param {{ run: { run: string, archived_at: string | null }, left: any }} props
 */
export function Files({ run, left }) {
  const [outcome, attempt] = useOutcome();
  const download = (/** @type {string} */ name) =>
    attempt(async () => {
      location.assign((await get(["runs", run.run, "artifacts", ...name.split("/")], { link: "true" })).url);
    });
  if (run.archived_at && !left?.files) return <Trouble error={left?.fault} value={undefined} />;
  if (!left?.complete) return <p class="dim">{W.run.noFiles}</p>;
  return (
    <>
      {outcome}
      <div class="scroll" tabindex={0} role="region" aria-label={W.run.files}>
        <table>
          <tbody>
            {left.files.map((/** @type {{ name: string, size: number }} */ file) => (
              <tr key={file.name}>
                <td class="mono">{visible(file.name)}</td>
                <td class="number">{bytes(file.size)}</td>
                <td>
                  <button
                    type="button"
                    class="small"
                    aria-label={W.run.download(visible(file.name))}
                    onClick={() => download(file.name)}
                  >
                    ↓
                  </button>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {left.outputs
        .filter((/** @type {Record<string, string>} */ output) => output.state !== "archived")
        .map((/** @type {Record<string, string>} */ output) => (
          <p key={output.name} class="notice">
            {visible(output.name)}: {visible(output.state)}. {visible(output.why || "")}
          </p>
        ))}
    </>
  );
}

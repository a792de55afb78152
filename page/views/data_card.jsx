// What a check says about data: its reasons, and the data card with the classes of each split as bars.
import { bytes, count, visible } from "../format.js";
import { Facts } from "../parts.jsx";
import { W } from "../words.js";
import { DataPictures } from "./data_pictures.jsx";

const MOST = 20; // sentences of each kind, as the API has them

/**
 * The reasons of a verdict as a list; nothing for data without fault.
 * @param {{ said: any, title: string, notes?: boolean, more?: import("preact").ComponentChildren }} props
 */
export function Findings({ said, title, notes = false, more = "" }) {
  const all = [...said.refusals, ...said.warnings, ...(notes ? said.notes : [])].slice(0, 3 * MOST);
  if (!all.length) return null;
  const refused = said.verdict === "refused";
  return (
    <div class={`notice findings ${refused ? "bad" : ""}`} role={refused ? "alert" : "status"}>
      <b>{title}</b>
      <ul class="lines">
        {all.map((sentence, i) => (
          <li key={i}>{visible(sentence)}</li>
        ))}
      </ul>
      {more}
    </div>
  );
}

/**
 * `said` is an answer of `GET data/card`.
 * @param {{ said: any }} props
 */
export function DataCard({ said }) {
  const { card } = said,
    splits = /** @type {[string, Record<string, number>][]} */ (Object.entries(card.splits || {})),
    longest = Math.max(1, ...splits.flatMap(([, classes]) => Object.values(classes)));
  return (
    <>
      <DataPictures of={said.of} />
      {said.verdict === "fine" && <p class="notice good">{W.data.fine}</p>}
      <Findings said={said} title={W.data.findings} notes />
      {splits.map(([split, classes]) => (
        <Split key={split} title={`${split}: ${count(card.totals[split])} ${card.unit}`} {...{ classes, longest }} />
      ))}
      <Facts
        rows={[
          [W.drops.files, count(card.files)],
          [W.drops.size, bytes(card.bytes)],
          [W.data.sizes, spread(card.sizes, bytes)],
          [W.data.widths, spread(card.widths, pixels)],
          [W.data.heights, spread(card.heights, pixels)],
          [
            W.data.modes,
            Object.entries(card.modes || {})
              .map(([mode, number]) => `${mode} ${count(number)}`)
              .join(", "),
          ],
          [W.data.duplicates, card.duplicates && "within" in card.duplicates && W.data.same(card.duplicates)],
          [W.data.read, card.read],
        ]}
      />
    </>
  );
}

/** @param {{ title: string, classes: Record<string, number>, longest: number }} props */
const Split = ({ title, classes, longest }) => (
  <>
    <h3>{visible(title)}</h3>
    <ul class="bars">
      {Object.entries(classes).map(([name, number]) => (
        <li key={name}>
          <span>{visible(name)}</span>
          <progress max={longest} value={number} aria-label={visible(name)} />
          <b class="number">{count(number)}</b>
        </li>
      ))}
    </ul>
  </>
);

/** The smallest value, the median and the largest of a card in words. */
const spread = (
  /** @type {[number, number, number] | undefined} */ three,
  /** @type {(value: number) => string} */ words,
) => (three?.length ? W.data.spread(words(three[0]), words(three[1]), words(three[2])) : "");
const pixels = (/** @type {number} */ value) => W.data.pixels(count(value));

// A line of a log as pieces of text with colours. Only colours and weights (SGR) are obeyed; every other escape and
// control character is shown as a sign, so that a log can't hide or forge anything.
import { visible } from "./format.js";

const SGR = /\u001b\[([0-9;]{0,40})m/g;
// Control characters, and those that turn the direction of text or take no room.
const UNSEEN = new RegExp(
  "([\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u00ad\\u061c\\u200b-\\u200f\\u2028-\\u202e" +
    "\\u2060-\\u206f\\ufeff\\ufff9-\\ufffb]+)",
);
const WEIGHTS = [1, 2, 3, 4, 9];

/**
 * @typedef {{ text: string, kind: string }} Piece `kind`: a list of classes, or "esc" for what stands for an escape
 * @typedef {{ weights: Set<number>, colour: number }} Look
 */

/** @param {string} line */
export function pieces(line) {
  /** @type {Piece[]} */
  const found = [];
  let at = 0,
    look = /** @type {Look} */ ({ weights: new Set(), colour: 0 });
  for (const match of line.matchAll(SGR)) {
    add(found, line.slice(at, match.index), look);
    look = after(look, match[1]);
    at = match.index + match[0].length;
  }
  add(found, line.slice(at), look);
  return found;
}

/** @type {(found: Piece[], text: string, look: Look) => void} */
function add(found, text, look) {
  if (!text) return;
  const kind = [...[...look.weights].map((weight) => `a${weight}`), look.colour ? `f${look.colour}` : ""]
    .filter(Boolean)
    .join(" ");
  // Signs for control characters stand out from a log that writes the same signs itself.
  for (const part of text.split(UNSEEN)) {
    if (part) found.push(visible(part) === part ? { text: part, kind } : { text: visible(part), kind: "esc" });
  }
}

/** @type {(look: Look, codes: string) => Look} */
function after(look, codes) {
  const weights = new Set(look.weights),
    given = codes.split(";").map(Number);
  let { colour } = look;
  for (let i = 0; i < given.length; i++) {
    const code = given[i];
    if (code === 0) {
      weights.clear();
      colour = 0;
    } else if (WEIGHTS.includes(code)) weights.add(code);
    else if (code === 22) {
      weights.delete(1);
      weights.delete(2);
    } else if (code === 23 || code === 24 || code === 29) weights.delete(code - 20);
    else if (code === 39) colour = 0;
    else if ((code >= 30 && code <= 37) || (code >= 90 && code <= 97)) colour = code;
    else if (code === 38 || code === 48) i += given[i + 1] === 5 ? 2 : 4; // 256 colours and true colours: passed over
  }
  return { weights, colour };
}

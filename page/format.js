// Values as people read them: in their zone and their way to write numbers. What comes from outside stays text.
import { W } from "./words.js";

/**
 * Formatters take milliseconds to make, which the first view need not wait for.
 * @template T
 * @param {() => { format: (value: T) => string }} make
 */
const lazy = (make) => {
  /** @type {{ format: (value: T) => string } | undefined} */
  let made;
  return (/** @type {T} */ value) => (made ??= make()).format(value);
};
const CLOCK = lazy(() => new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" }));
const SHORT = lazy(
  () => new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" }),
);
const TIME = lazy(() => new Intl.DateTimeFormat(undefined, { timeStyle: "medium" }));
const COUNT = lazy(() => new Intl.NumberFormat("en")); // as the page's words: whole numbers beside decimals agree

/**
 * The time alone where the day is known from another moment, else with its day.
 * @param {string} text
 * @param {string} other
 */
export const beside = (text, other) =>
  new Date(text).toDateString() === new Date(other).toDateString() ? TIME(new Date(text)) : shortClock(text);
const DAY = lazy(() => new Intl.DateTimeFormat(undefined, { dateStyle: "medium" }));
/** @param {string} text */
export const day = (text) => DAY(new Date(text));

/** @param {number} value */
export const count = (value) => (Math.abs(value) < 1000 ? String(value) : COUNT(value));
/** @param {string | number | null | undefined} text */
export const clock = (text) => (text ? CLOCK(new Date(text)) : "");
/** @param {string | number | null | undefined} text */
export const shortClock = (text) => (text ? SHORT(new Date(text)) : "");

/** @param {number | null | undefined} value */
export function number(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e15) return count(value);
  return size !== 0 && (size < 1e-4 || size >= 1e9) ? value.toExponential(3) : String(Number(value.toPrecision(5)));
}

/**
 * A metric's value: accuracies in percent, others with four digits. cli/show/runs.py writes the same.
 * @param {string} name
 * @param {number} value
 */
export function metric(name, value) {
  if (!Number.isFinite(value)) return W.nothing;
  if (name.endsWith("accuracy")) return `${(100 * value).toFixed(2)}%`;
  const size = Math.abs(value);
  if (Number.isInteger(value) ? size < 1e15 : size >= 1000 && size < 1e9) return COUNT(Math.round(value));
  if (size >= 1e-4 && size < 1e9) return String(Number(value.toPrecision(4)));
  return value
    .toExponential(3)
    .replace(/\.?0*e([+-])(\d)$/, "e$10$2")
    .replace(/\.?0*e/, "e");
}

/**
 * A value on a metric's axis: accuracies in percent, others as numbers.
 * @param {string} name
 * @param {number} value
 */
export const tick = (name, value) =>
  name.endsWith("accuracy") ? `${Number((100 * value).toPrecision(5))}%` : number(value);

/**
 * Sentences of the API name moments in UTC; the page shows them in the reader's zone, like every other moment.
 * @param {string} text
 */
export const inZone = (text) =>
  visible(text).replace(/(\d{4}-\d\d-\d\d) (\d\d:\d\d) UTC/g, (_, day, time) => shortClock(`${day}T${time}:00Z`));

/**
 * Dollars and cents: `$1,234.50`, `<$0.01` for less, `-$0.50` below zero. cli/show/costs.py writes the same.
 * @param {number | null | undefined} dollars
 */
export function money(dollars) {
  if (dollars === null || dollars === undefined) return W.nothing;
  const [sign, size] = [dollars < 0 ? "-" : "", Math.abs(dollars)];
  if (size > 0 && size < 0.01) return `${sign}<$0.01`;
  return `${sign}$${size.toFixed(2).replace(/\B(?=(\d{3})+\.)/g, ",")}`;
}

/**
 * A part of 1 in whole percent.
 * @param {number} part
 */
export const share = (part) => `${Math.floor(part * 100 + 0.5)} %`;

/**
 * What was saved, or a cost: `$1.50 less`, `$0.02 more`.
 * @param {number | null | undefined} dollars
 */
export function saved(dollars) {
  if (dollars === null || dollars === undefined) return "";
  return W.money.difference(money(Math.abs(dollars)), dollars >= 0);
}

/** @param {number} value */
export function bytes(value) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let at = 0;
  while (value >= 1000 && at < units.length - 1) {
    value /= 1000;
    at++;
  }
  return `${at ? value.toPrecision(3) : value} ${units[at]}`;
}

/**
 * `0.4 s`, `42 s`, `3 min 5 s`, `2 h 30 min`, `3 d 4 h`. cli/api/phases.py writes the same.
 * @param {number} seconds
 */
export function duration(seconds) {
  if (!Number.isFinite(seconds) || seconds < 0) return "–";
  const rounded = (/** @type {number} */ unit) => Math.floor(seconds / unit + 0.5),
    /** @type {(value: number, of: number, unit: string, smaller: string) => string} */
    two = (value, of, unit, smaller) =>
      `${Math.floor(value / of)} ${unit}${value % of ? ` ${value % of} ${smaller}` : ""}`;
  const tenths = Math.floor(seconds * 10 + 0.5) / 10;
  if (tenths < 10) return `${tenths} s`;
  if (rounded(1) < 60) return `${rounded(1)} s`;
  if (rounded(1) < 3600) return two(rounded(1), 60, "min", "s");
  return rounded(60) < 48 * 60 ? two(rounded(60), 60, "h", "min") : two(rounded(3600), 24, "d", "h");
}

/** @param {string} text */
export function ago(text, now = Date.now()) {
  const seconds = (now - new Date(text).getTime()) / 1000;
  if (seconds < 5) return W.time.now;
  return W.time.ago(
    seconds < 60
      ? `${Math.round(seconds)} s`
      : seconds < 3600
        ? `${Math.round(seconds / 60)} min`
        : seconds < 172_800
          ? `${Math.round(seconds / 3600)} h`
          : `${Math.round(seconds / 86_400)} d`,
  );
}

/**
 * When a waiting run will probably begin, or behind which runs of unknown length, in words; nothing if neither is
 * known.
 * @param {{ expected_at: string | null, after: string[] }} waiting
 */
export function begins({ expected_at: text, after }, now = Date.now()) {
  const seconds = text ? (new Date(text).getTime() - now) / 1000 : NaN;
  if (Number.isNaN(seconds)) return after?.length ? W.time.after(visible(after[0]), after.length - 1) : "";
  return W.time.begins(seconds >= 1 ? duration(seconds) : "");
}

/**
 * Seconds from one moment to another, or to now.
 * @param {string} from
 * @param {string} [to]
 */
export const between = (from, to) => (new Date(to ?? Date.now()).getTime() - new Date(from).getTime()) / 1000;

// Control characters, and those that turn the direction of text or take no room: shown, so that none hides.
const HIDDEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

/** @param {unknown} text */
export function visible(text) {
  return String(text ?? "").replace(HIDDEN, (sign) => {
    const code = sign.charCodeAt(0);
    return code < 0x20
      ? String.fromCharCode(0x2400 + code)
      : code === 0x7f
        ? "␡"
        : `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
  });
}

/**
 * A text as one argument of a POSIX shell.
 * @param {string} text
 */
export const shell = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${String(text).replaceAll("'", `'\\''`)}'`);

/**
 * A step of an advice, and the command at its end, if there is one: `Continue it: python3 trainyard.py continue a`.
 * @param {string} step
 */
export function adviceOf(step) {
  const at = step.indexOf(": python3 trainyard.py ");
  return at < 0 ? { words: step, command: "" } : { words: `${step.slice(0, at)}:`, command: step.slice(at + 2) };
}

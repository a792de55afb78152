// How much of a budget is spent, reserved and free: of a project's month, or of a grant.
import { share } from "../format.js";

const NEARLY = 0.8; // of a budget: its bar warns

/**
 * What is used of a whole budget, in dollars: the part beyond the budget stands behind its end.
 * @param {{ spent: number, used: number, whole: number, label: (part: string) => string }} props
 */
export function Used({ spent, used, whole, label }) {
  const part = used / (whole || Infinity),
    parts = /** @type {[string, number][]} */ ([
      ["spent", Math.min(spent, whole)],
      ["reserved", Math.min(used, whole) - Math.min(spent, whole)],
      ["free", Math.max(0, whole - used)],
      ["beyond", Math.max(0, used - whole)],
    ]);
  return (
    <div
      class={`budget ${part >= 1 ? "over" : part >= NEARLY ? "near" : ""}`}
      role="img"
      aria-label={label(share(part))}
    >
      {parts.map(([kind, dollars]) => dollars > 0 && <span key={kind} class={kind} style={{ flexGrow: dollars }} />)}
      <b>{share(part)}</b>
    </div>
  );
}

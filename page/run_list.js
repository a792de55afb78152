// What the list of runs shows of its rows: trials under their sweeps, parameters that differ, columns of one's choice.
import { day } from "./format.js";
import { own } from "./own.js";

/**
 * @typedef {{ run: string, sweep: string, trials: number | null, parameters: Record<string, unknown> }} Row
 * @typedef {Row & { state: string, experiment: string, owner: string, drop: string, created_at: string }} ListedRow
 * @typedef {{ run: string, group: string, states: Map<string, number>, size: number }} Group a heading above its rows
 */

export const STATES = ["received", "submitted", "queued", "running", "completed", "failed", "canceled", "broken"];
export const STANDARD = ["curve", "why", "experiment", "nodes", "took"];
const MOST_DIFFERING = 4; // parameters with columns of their own

/**
 * The rows without the trials of a sweep that is among them; the trials of an open sweep stand under it.
 * @template {Row} R
 * @param {R[]} runs
 * @param {Set<string>} open names of the sweeps that are unfolded
 */
export function unfolded(runs, open) {
  const sweeps = new Set(runs.filter((run) => run.trials !== null).map((run) => run.run)),
    /** @type {Map<string, R[]>} */
    trials = new Map();
  for (const run of runs) if (sweeps.has(run.sweep)) trials.set(run.sweep, [...(trials.get(run.sweep) || []), run]);
  return runs
    .filter((run) => !sweeps.has(run.sweep))
    .flatMap((run) => (open.has(run.run) ? [run, ...(trials.get(run.run) || [])] : [run]));
}

/**
 * What rows can be grouped by, each with a row's group.
 * @type {Map<string, (row: ListedRow) => string>}
 */
export const GROUPS = new Map([
  ["experiment", (row) => row.experiment],
  ["state", (row) => row.state],
  ["owner", (row) => row.owner],
  ["route", (row) => row.drop.split("/")[0]],
  ["day", (row) => day(row.created_at)],
]);

/**
 * The rows under a heading for each group, groups in the order of their first rows; trials stay under their sweep. Of a
 * folded group, the heading alone. Without a known grouping, the rows as they are.
 * @param {ListedRow[]} rows
 * @param {string | undefined} by
 * @param {Set<string>} folded
 * @returns {(ListedRow | Group)[]}
 */
export function grouped(rows, by, folded = new Set()) {
  const of = GROUPS.get(by ?? "");
  if (!of) return rows;
  /** @type {Map<string, ListedRow[]>} */
  const groups = new Map();
  let parent = "",
    name = "";
  for (const row of rows) {
    if (!row.sweep || row.sweep !== parent) [name, parent] = [of(row), row.run];
    groups.set(name, [...(groups.get(name) ?? []), row]);
  }
  return [...groups].flatMap(([group, members]) => [heading(group, members), ...(folded.has(group) ? [] : members)]);
}

/**
 * @param {string} group
 * @param {ListedRow[]} members
 * @returns {Group}
 */
function heading(group, members) {
  const states = new Map();
  for (const { state } of members) states.set(state, (states.get(state) ?? 0) + 1);
  return { run: "", group, states, size: members.length };
}

/**
 * The names of the parameters that have several values among the runs, those with the most values first.
 * @param {Row[]} runs
 */
export function differing(runs) {
  /** @type {Map<string, Set<string>>} */
  const values = new Map();
  for (const { parameters } of runs)
    for (const name of Object.keys(parameters || {})) {
      const known = values.get(name) ?? new Set();
      values.set(name, known.add(String(own(parameters, name))));
    }
  const several = [...values].filter(([, found]) => found.size > 1);
  return several
    .sort(([a, x], [b, y]) => y.size - x.size || (a < b ? -1 : 1))
    .slice(0, MOST_DIFFERING)
    .map(([name]) => name);
}

/**
 * The columns that the address names; without any, the standard ones and those that these rows have.
 * @param {string | undefined} asked
 * @param {string[]} found
 */
export const chosenColumns = (asked, found) => new Set(asked ? asked.split(",") : [...STANDARD, ...found]);

/**
 * @param {Set<string>} set
 * @param {string} name
 */
export function toggled(set, name) {
  const next = new Set(set);
  if (!next.delete(name)) next.add(name);
  return next;
}

// What the list of runs shows of its rows: trials under their sweeps, parameters that differ, columns of one's choice.
import { own } from "./own.js";

/** @typedef {{ run: string, sweep: string, trials: number | null, parameters: Record<string, unknown> }} Row */

export const STATES = ["received", "submitted", "queued", "running", "completed", "failed", "canceled", "broken"];
export const STANDARD = ["curve", "why", "experiment", "nodes", "took"];
const MOST_DIFFERING = 4; // parameters with columns of their own

/**
 * The rows without the trials of a sweep that is among them; the trials of an open sweep stand under it.
 * @param {Row[]} runs
 * @param {Set<string>} open names of the sweeps that are unfolded
 */
export function unfolded(runs, open) {
  const sweeps = new Set(runs.filter((run) => run.trials !== null).map((run) => run.run)),
    /** @type {Map<string, Row[]>} */
    trials = new Map();
  for (const run of runs) if (sweeps.has(run.sweep)) trials.set(run.sweep, [...(trials.get(run.sweep) || []), run]);
  return runs
    .filter((run) => !sweeps.has(run.sweep))
    .flatMap((run) => (open.has(run.run) ? [run, ...(trials.get(run.run) || [])] : [run]));
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

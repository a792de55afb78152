// What several views reckon from a run's record.
import { between } from "./format.js";

/**
 * @typedef {{ training: number, allocation: number, idle: number }} Cost
 * @typedef {{ state: string, history: { state: string, at: string }[], cost: Cost | null }} Run
 */

/** @param {{ state: string }} run */
export const ended = (run) => ["completed", "failed", "canceled"].includes(run.state);

/**
 * Dollars of the run's nodes so far: training, starting and idling after it; null where nothing is known.
 * @param {Run} run
 */
export const cost = (run) => (run.cost ? run.cost.training + run.cost.allocation + run.cost.idle : null);

/** @param {Run} run */
export function runSeconds(run) {
  const started = run.history.find((moment) => moment.state === "running");
  if (!started) return null;
  return between(started.at, ended(run) ? run.history.at(-1)?.at : undefined);
}

/**
 * The share of a run that is done by its own curves: the metric `done`, or the last epoch of all; null if neither is
 * known. The API says the same of runs with a date (shared/deadlines/pace.py).
 * @param {Map<string, number[][]> | undefined} series
 * @param {number | null} epochs how many epochs the run trains
 */
export function doneShare(series, epochs) {
  const last = (/** @type {string} */ name) => series?.get(name)?.at(-1)?.[1],
    done = last("done"),
    epoch = last("epoch");
  const share = done ?? (epochs && epoch !== undefined ? epoch / epochs : null);
  return share === null ? null : Math.max(0, Math.min(1, share));
}

const DEDICATED_FROM = 1000; // the first member on dedicated nodes

/**
 * The short name of a job of an elastic run, as its log has it (shared/elastic/workload.py numbers the jobs).
 * @param {number} number of the job among all jobs of the run
 * @param {number} nodes the most that the run may have
 */
export const jobName = (number, nodes) =>
  number >= DEDICATED_FROM ** 2
    ? `m${Math.floor(number / DEDICATED_FROM)}-${number % DEDICATED_FROM}`
    : `m${number % nodes}-${Math.floor(number / nodes) + 1}`;

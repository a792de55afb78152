// What several views reckon from a run's record.
import { between } from "./format.js";

export const ended = (run) => ["completed", "failed", "canceled"].includes(run.state);

/** Dollars of the run's nodes so far: training, starting and idling after it; null where nothing is known. */
export const cost = (run) => (run.cost ? run.cost.training + run.cost.allocation + run.cost.idle : null);

export function runSeconds(run) {
  const started = run.history.find((moment) => moment.state === "running");
  if (!started) return null;
  return between(started.at, ended(run) ? run.history.at(-1).at : undefined);
}

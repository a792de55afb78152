// A sweep's trials, live: what each tried and reached, the best so far over trials and dollars, what mattered.
import { get } from "../../api.js";
import { Chart } from "../../chart.jsx";
import { metric, money, number, share, visible } from "../../format.js";
import { useLive } from "../../live.js";
import { State, Trouble } from "../../parts.jsx";
import { own } from "../../own.js";
import { ended } from "../../record.js";
import { to } from "../../route.js";
import { columns } from "../../series.js";
import { W } from "../../words.js";
import { Parallel } from "../compare.jsx";
import { useMemo } from "preact/hooks";

const COMPARED = 20;

export function Trials({ run }) {
  const { value, error } = useLive((signal) => get(["runs", run.run, "trials"], {}, { signal }), [run.run], {
    still: () => ended(run),
  });
  const trials = value?.trials || [],
    told = trials.filter((trial) => trial.told !== null);
  const order = value?.maximize ? [...told].sort((a, b) => b.told - a.told) : [...told].sort((a, b) => a.told - b.told),
    names = [...new Set(trials.flatMap((trial) => Object.keys(trial.parameters)))];
  const records = useMemo(() => told.map((trial) => asRecord(trial, value.metric)), [value]);
  if (!value) return <Trouble error={error} value={value} />;
  return (
    <>
      <p class="dim">
        {W.sweep.standing(run.sweep.trials, run.sweep.trials_ended, money(run.sweep.trials_dollars), ended(run))}
        {run.sweep.sweep_closing && ` ${visible(run.sweep.sweep_closing)}`}
        {run.sweep.early_values && ` ${visible(run.sweep.early_values)}`}{" "}
        {order.length > 1 && (
          <a
            href={to("compare", [], {
              runs: order
                .slice(0, COMPARED)
                .map((trial) => trial.run)
                .filter(Boolean)
                .join(","),
            })}
          >
            {W.sweep.compare}
          </a>
        )}
      </p>
      <div class="scroll" tabindex={0} role="region" aria-label={W.sweep.trials}>
        <table>
          <thead>
            <tr>
              <th scope="col">{W.sweep.trial}</th>
              <th scope="col">{W.runs.state}</th>
              <th scope="col">
                {visible(value.metric)}
                <small>{W.sweep.seen}</small>
              </th>
              {names.map((name) => (
                <th scope="col" key={name}>
                  {visible(name)}
                </th>
              ))}
              <th scope="col">{W.runs.ofModel}</th>
              <th scope="col">{W.runs.cost}</th>
            </tr>
          </thead>
          <tbody>
            {trials.map((trial) => (
              <tr key={trial.number}>
                <th scope="row">
                  {trial.run ? <a href={to("run", [trial.run])}>{trial.number}</a> : trial.number}
                  {trial.run === run.sweep.best_trial && <small>{ended(run) ? W.runs.best : W.sweep.best}</small>}
                </th>
                <td>
                  <State state={trial.state} />
                </td>
                <td class="cell">{trial.told === null ? "" : metric(value.metric, trial.told)}</td>
                {names.map((name) => (
                  <td key={name} class="cell">
                    {shown(own(trial.parameters, name))}
                  </td>
                ))}
                <td class="cell">{trial.of_model === null ? "" : metric(value.metric, trial.of_model)}</td>
                <td class="cell">{money(trial.dollars)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {told.length > 1 && (
        <div class="charts spaced">
          <Chart
            title={W.sweep.overTrials}
            of={value.metric}
            series={[course(told, value.maximize, (_, i) => i + 1)]}
            sync=""
          />
          <Chart
            title={W.sweep.overDollars}
            of={value.metric}
            series={[course(told, value.maximize, spent())]}
            sync=""
          />
        </div>
      )}
      {records.length > 2 && (
        <div class="spaced">
          <Parallel records={records} />
        </div>
      )}
      {Object.keys(value.importance).length > 0 && (
        <>
          <h3>{W.sweep.importance}</h3>
          <ul class="bars">
            {Object.entries(value.importance).map(([name, part]) => (
              <li key={name}>
                <span>{visible(name)}</span>
                <progress max="1" value={part} aria-label={visible(name)} />
                <b class="number">{share(part)}</b>
              </li>
            ))}
          </ul>
        </>
      )}
    </>
  );
}

const shown = (value) =>
  value === undefined || value === null ? "" : typeof value === "number" ? number(value) : visible(String(value));

/** A trial as the parallel coordinates read a run. */
const asRecord = (trial, metric) => ({
  run: trial.run || String(trial.number),
  state: trial.state,
  history: [],
  nodes: 1,
  parameters: trial.parameters,
  metrics: { of_model: { [metric]: trial.told } },
});

/** The best so far, in the order of the trials, across what `at` says of each. */
function course(told, maximize, at) {
  let best = null;
  const points = told.map((trial, i) => {
    best = best === null ? trial.told : maximize ? Math.max(best, trial.told) : Math.min(best, trial.told);
    return [at(trial, i), best];
  });
  return { name: W.sweep.best, label: "", ...columns(points, (point) => point[0]) };
}

const spent = () => {
  let dollars = 0;
  return (trial) => (dollars += trial.dollars);
};

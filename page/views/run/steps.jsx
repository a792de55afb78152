// The steps of a pipeline: their graph, each one behind those that it needs, and a table that says the same.
import { between, duration, visible } from "../../format.js";
import { Drawing, State } from "../../parts.jsx";
import { to } from "../../route.js";
import { W } from "../../words.js";

const HIGH = 44, // pixels of a row, and of the box in it
  BOX = 28;

/** @param {{ run: import("../../../schemas/answers.d.ts").Live["run"] }} props */
export function Steps({ run }) {
  const placed = layout(run.steps),
    rows = Math.max(...placed.map((one) => one.row)) + 1;
  const summary = run.steps.map((step) => `${step.step} ${W.states[step.state]}`).join(", ");
  return (
    <>
      <Drawing label={visible(summary)} height={rows * HIGH} draw={(width) => graph(placed, width)} />
      <div class="scroll" tabindex={0} role="region" aria-label={W.steps.title}>
        <table>
          <thead>
            <tr>
              {[W.steps.step, W.runs.state, W.steps.took, W.steps.after].map((name) => (
                <th scope="col" key={name}>
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {run.steps.map((step, i) => (
              <tr key={step.step}>
                <th scope="row">
                  {step.job ? <a href={to("run", [run.run], { rank: i })}>{visible(step.step)}</a> : visible(step.step)}
                </th>
                <td>
                  <State state={step.state} /> {step.why && <small>{visible(step.why)}</small>}
                </td>
                <td class="cell">{step.began && duration(between(step.began, step.ended ?? undefined))}</td>
                <td>{visible(step.needs.join(", "))}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}

/** Each step with its column, how many come one after the other before it, and its row among those. */
function layout(steps) {
  const columns = new Map(),
    rows = [];
  while (columns.size < steps.length) {
    const ready = steps.filter((one) => !columns.has(one.step) && one.needs.every((name) => columns.has(name)));
    for (const one of ready.length ? ready : steps)
      columns.set(one.step, Math.max(-1, ...one.needs.map((name) => columns.get(name) ?? -1)) + 1);
  }
  return steps.map((step) => {
    const column = columns.get(step.step);
    rows[column] = (rows[column] ?? -1) + 1;
    return { step, column, row: rows[column] };
  });
}

function graph(placed, width) {
  const across = width / (Math.max(...placed.map((one) => one.column)) + 1),
    box = Math.min(across - 24, 180),
    at = new Map(placed.map((one) => [one.step.step, one]));
  const letters = Math.max(3, Math.floor(box / 7) - 1),
    middle = (one) => one.row * HIGH + HIGH / 2;
  return (
    <>
      {placed.flatMap((one) =>
        one.step.needs
          .filter((name) => at.has(name))
          .map((name) => {
            const from = at.get(name),
              x = from.column * across + box,
              end = one.column * across;
            return (
              <path
                key={`${name} ${one.step.step}`}
                class="edge"
                d={`M${x},${middle(from)} C${x + 20},${middle(from)} ${end - 20},${middle(one)} ${end},${middle(one)}`}
              />
            );
          }),
      )}
      {placed.map((one) => (
        <g key={one.step.step} class={`node ${one.step.state}`}>
          <rect x={one.column * across + 1} y={middle(one) - BOX / 2} width={box - 2} height={BOX} rx="6" />
          <text x={one.column * across + 8} y={middle(one) + 4}>
            {short(visible(one.step.step), letters)}
          </text>
        </g>
      ))}
    </>
  );
}

const short = (name, letters) => (name.length > letters ? `${name.slice(0, letters - 1)}…` : name);

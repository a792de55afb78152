// What was spent, on what and by whom, and how the budgets stand: the API's ledger, nothing reckoned here.
import { get } from "../api.js";
import { between, money, number, saved, share, visible } from "../format.js";

import { useLive } from "../live.js";
import { Drawing, Facts, Trouble } from "../parts.jsx";
import { refine, to } from "../route.js";
import { W } from "../words.js";
import { Used } from "./budget_bar.jsx";
import { Grants } from "./grants.jsx";

const KINDS = ["training", "allocation", "idle", "lease", "unexplained"],
  BY = ["project", "run", "cluster", "owner", "grant"];

export function Money({ route, me }) {
  const by = BY.includes(route.query.by) ? route.query.by : "project";
  const { value, error } = useLive(
    (signal) => get(["costs"], { by, since: route.query.since }, { signal }),
    [by, route.query.since],
    { soon: 15_000 },
  );
  return (
    <section>
      <h1 tabindex={-1}>{W.money.title}</h1>
      <form class="filters" onSubmit={(e) => e.preventDefault()}>
        <label>
          {W.money.by}
          <select value={by} onChange={(e) => refine({ by: e.currentTarget.value })}>
            {BY.map((one) => (
              <option key={one} value={one}>
                {W.money.bys[one]}
              </option>
            ))}
          </select>
        </label>
        <label>
          {W.money.since}
          <input
            type="date"
            value={route.query.since || value?.since.slice(0, 10) || ""}
            onChange={(e) => refine({ since: e.currentTarget.value })}
          />
        </label>
      </form>
      {error && value && (
        <p class="notice bad" role="alert">
          {visible(error.message)}
        </p>
      )}
      <Trouble error={error} value={value} />
      {value && <Shown value={value} by={by} />}
      {me.may_change && <Grants />}
    </section>
  );
}

/** @param {{ value: import("../../schemas/answers.d.ts").CostReport, by: string }} props */
function Shown({ value, by }) {
  const { total } = value,
    standing = Object.entries(value.standing);
  return (
    <>
      {value.missing.map((gap) => (
        <p class="notice bad" role="alert" key={`${gap.day}/${gap.cluster}`}>
          {visible(W.money.missing(gap))}
        </p>
      ))}
      <div class="cards">
        <section class="card roomy">
          <h2>{W.money.spent}</h2>
          <p class="big">{money(total.spent)}</p>
          <Facts
            rows={[
              ...KINDS.map((kind) => [
                <>
                  <i class={`key money-${kind}`} /> {W.money.kinds[kind]}
                </>,
                money(total[kind]),
              ]),
              [W.money.idleShare, share(total.idle_share)],
              [W.money.hours, number(Math.round(total.node_hours * 100) / 100)],
              [W.money.unpriced, total.unpriced_hours ? number(total.unpriced_hours) : ""],
              [W.money.unknown, total.unknown_hours ? number(Math.round(total.unknown_hours * 10) / 10) : ""],
            ]}
          />
        </section>
        <section class="card roomy">
          <h2>{W.money.saved}</h2>
          <Facts
            rows={[
              [W.money.alwaysOn, saved(total.saved_always_on)],
              [W.money.byDefault, saved(total.saved_default)],
            ]}
          />
        </section>
        {standing.length > 0 && (
          <section class="card">
            <h2>{W.money.standing}</h2>
            <p class="dim">{W.money.besides(Math.round(between(value.since, value.until) / 86_400))}</p>
            <Facts rows={standing.map(([name, dollars]) => [name, money(dollars)])} />
          </section>
        )}
        {value.budgets.length > 0 && (
          <section class="card">
            <h2>{W.money.budgets}</h2>
            {value.budgets.map((budget) => (
              <Budget key={budget.project} budget={budget} />
            ))}
          </section>
        )}
      </div>
      <section class="part spaced">
        <h2>{W.money.days}</h2>
        <Days days={value.days} />
      </section>
      <section class="part">
        <h2>{W.money.bys[by]}</h2>
        <div class="scroll" tabindex={0} role="region" aria-label={W.money.bys[by]}>
          <table>
            <thead>
              <tr>
                <th scope="col">{W.money.bys[by]}</th>
                <th scope="col" class="number">
                  {W.money.spent}
                </th>
                {KINDS.map((kind) => (
                  <th scope="col" class="number wide" key={kind}>
                    {W.money.kinds[kind]}
                  </th>
                ))}
                <th scope="col" class="number">
                  {W.money.hours}
                </th>
              </tr>
            </thead>
            <tbody>
              {value.lines.map((line) => (
                <tr key={`${line.name}/${line.key}`}>
                  <th scope="row">
                    {by === "run" && line.key ? (
                      <a href={to("run", [line.key])}>{visible(line.key)}</a>
                    ) : (
                      visible(line.name || line.key) || W.money.nobody
                    )}
                    {line.name ? <small>{visible(line.key)}</small> : ""}
                  </th>
                  <td class="number">{money(line.spent)}</td>
                  {KINDS.map((kind) => (
                    <td class="number wide" key={kind}>
                      {money(line[kind])}
                    </td>
                  ))}
                  <td class="number">{number(Math.round(line.node_hours * 100) / 100)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </section>
    </>
  );
}

/** @param {{ budget: import("../../schemas/answers.d.ts").BudgetState }} props */
function Budget({ budget }) {
  const used = budget.spent + budget.kept_back;
  return (
    <>
      <p>
        <b>{visible(budget.project)}</b>{" "}
        {budget.month === null ? money(budget.spent) : W.money.of(money(budget.spent), money(budget.month))}
        {budget.kept_back > 0 ? ` · ${W.money.kept(money(budget.kept_back))}` : ""}
        {budget.run === null ? "" : ` · ${W.money.aRun(money(budget.run))}`}
      </p>
      {budget.month !== null && (
        <Used
          spent={budget.spent}
          used={used}
          whole={budget.month}
          label={(part) => W.money.used(visible(budget.project), part)}
        />
      )}
      {budget.reached_at && <p class="notice bad">{W.money.reached}</p>}
    </>
  );
}

/** A bar for each day, its kinds above one another; the same in words for those who can't see it. */
function Days({ days }) {
  if (!days.length) return <p class="dim">{W.money.none}</p>;
  const sums = days.map((day) => KINDS.reduce((sum, kind) => sum + day[kind], 0));
  return (
    <Drawing
      height={190}
      label={days.map((day, i) => `${day.day} ${money(sums[i])}`).join(", ")}
      draw={(width) => bars(days, sums, width)}
    />
  );
}

const LABEL = 60; // pixels that a day's words take

function bars(days, sums, width) {
  const most = Math.max(...sums) || 1,
    each = Math.min(120, (width - 8) / days.length),
    every = Math.ceil(LABEL / each);
  return days.map((day, i) => {
    const middle = 4 + (i + 0.5) * each;
    let top = 160;
    return (
      <g key={day.day}>
        {KINDS.map((kind) => {
          const height = (day[kind] / most) * 140;
          top -= height;
          return (
            <rect
              key={kind}
              class={`money-${kind}`}
              x={middle - each * 0.38}
              y={top}
              width={each * 0.76}
              height={height}
            />
          );
        })}
        {i % every === 0 && (
          <text x={middle} y="178" text-anchor="middle">
            {day.day.slice(5)}
          </text>
        )}
        {every === 1 && (
          <text x={middle} y={top - 5} text-anchor="middle">
            {money(sums[i])}
          </text>
        )}
      </g>
    );
  });
}

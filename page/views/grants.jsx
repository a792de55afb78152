// The grants: what each program has spent, what its runs in progress may still cost, what is left, and its runs.
import { get } from "../api.js";
import { clock, money, visible } from "../format.js";
import { useLive } from "../live.js";
import { Facts, Trouble } from "../parts.jsx";
import { to } from "../route.js";
import { W } from "../words.js";
import { Used } from "./budget_bar.jsx";

export function Grants() {
  const { value, error } = useLive((signal) => get(["grants"], {}, { signal }), [], { soon: 15_000 });
  if (value?.length === 0) return null;
  return (
    <section class="part spaced">
      <h2>{W.grants.title}</h2>
      <Trouble error={error} value={value} />
      <div class="cards">
        {(value || []).map((grant) => (
          <Grant key={grant.id} grant={grant} />
        ))}
      </div>
    </section>
  );
}

/** @param {{ grant: import("../../schemas/answers.d.ts").GrantAnswer }} props */
function Grant({ grant }) {
  const live = grant.in_progress.filter((run) => !run.ended);
  return (
    <section class="card roomy">
      <h3>{visible(grant.purpose)}</h3>
      <Used
        spent={grant.spent}
        used={grant.spent + grant.reserved}
        whole={grant.budget}
        label={(part) => W.grants.used(visible(grant.purpose), part)}
      />
      <Facts
        rows={[
          [W.grants.id, grant.id],
          [W.grants.spent, W.grants.of(money(grant.spent), money(grant.budget))],
          [W.grants.reserved, money(grant.reserved)],
          [W.grants.left, money(grant.left)],
          [W.grants.runs, W.grants.counts(grant.runs_used, grant.runs, grant.runs_now, grant.at_once)],
          [W.grants.until, clock(grant.until)],
          [W.grants.by, visible(grant.by)],
        ]}
      />
      {grant.over && <p class="notice">{visible(grant.over)}</p>}
      {live.length > 0 && (
        <ul>
          {live.map((run) => (
            <li key={run.run}>
              <a href={to("run", [run.run])}>{run.run}</a> {W.grants.atMost(money(run.spent), money(run.most))}
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

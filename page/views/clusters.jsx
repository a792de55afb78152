// The clusters: how many nodes over time, who holds them and why, what was decided.
import { get, post, remove } from "../api.js";
import { begins, clock, duration, inZone, number, shortClock, visible } from "../format.js";
import { useRef } from "preact/hooks";
import { useLive } from "../live.js";
import { Ask, Drawing, Facts, Trouble, Unfolding, useOutcome, When } from "../parts.jsx";
import { to } from "../route.js";
import { W } from "../words.js";

const KINDS = ["running", "preparing", "idle", "leaving", "unusable"],
  TURNS = 6;

export function Clusters({ me }) {
  const turn = useRef(0),
    known = useRef(/** @type {any} */ ({}));
  // The first look asks for all, three requests; then each look asks for one of them, mostly for the clusters.
  const { value, error, again } = useLive(
    async (signal) => {
      const first = turn.current++ === 0,
        at = turn.current % TURNS,
        before = known.current;
      const [clusters, leases, nodes] = await Promise.all([
        first || at > 1 ? get(["clusters"], {}, { signal }) : before.clusters,
        first || at === 0 ? get(["leases"], {}, { signal }) : before.leases,
        first || at === 1 ? get(["nodes"], { hours: 24 }, { signal }) : before.nodes,
      ]);
      if (clusters !== before.clusters || leases !== before.leases || nodes !== before.nodes)
        known.current = { clusters, leases, nodes };
      return known.current;
    },
    [],
    { soon: 4000 },
  );
  const anew = () => {
    turn.current = 0;
    again();
  };
  return (
    <section>
      <h1 tabindex={-1}>{W.clusters.title}</h1>
      {error && value && (
        <p class="notice bad" role="alert">
          {visible(error.message)}
        </p>
      )}
      <Trouble error={error} value={value} />
      {value?.clusters.length === 0 && <p class="notice">{W.clusters.empty}</p>}
      {value?.clusters.map((cluster) => (
        <Cluster
          key={cluster.name}
          cluster={cluster}
          me={me}
          again={anew}
          report={value.nodes}
          leases={value.leases.filter((lease) => lease.cluster === cluster.name && lease.active)}
        />
      ))}
    </section>
  );
}

/**
 * @typedef {import("../../schemas/answers.d.ts").ClusterAnswer} ClusterAnswer
 * @typedef {import("../../schemas/answers.d.ts").NodesReport} NodesReport
 * @typedef {import("../../schemas/answers.d.ts").LeaseAnswer} LeaseAnswer
 * @param {{ cluster: ClusterAnswer, leases: LeaseAnswer[], report: NodesReport, me: import("../app.jsx").Me,
 *   again: () => void }} props
 */
function Cluster({ cluster, leases, report, me, again }) {
  const [outcome, attempt] = useOutcome(),
    { decision } = cluster,
    seen = report.clusters.find((one) => one.cluster === cluster.name);
  const toZero = () =>
    attempt(async () => {
      await post(["clusters", cluster.name, "scale-to-zero"], undefined, { force: "true" });
      again();
      return W.clusters.done;
    });
  const end = (lease) =>
    attempt(async () => {
      await remove(["leases", lease.lease]);
      again();
      return W.clusters.ended;
    });
  return (
    <section class="card">
      <h2>{visible(cluster.name)}</h2>
      <div class="beside">
        <div>
          <p>
            {W.clusters.nodes(number(cluster.nodes), number(cluster.max_nodes))}
            {KINDS.filter((kind) => cluster[`${kind}_nodes`]).map((kind) => (
              <>
                , <i class={`key node-${kind}`} /> {cluster[`${kind}_nodes`]} {W.clusters.kinds[kind]}
              </>
            ))}
          </p>
          <h3>{W.clusters.over}</h3>
          <Over seen={seen} since={report.since} until={report.until} />
          {cluster.waiting?.length > 0 && (
            <>
              <h3>{W.clusters.waiting(cluster.waiting_runs ?? cluster.waiting.length)}</h3>
              <ul class="lines">
                {cluster.waiting.map((one) => (
                  <li key={one.run}>
                    <a href={to("run", [one.run])}>{visible(one.run)}</a>{" "}
                    <small>
                      <When at={one.since} /> · {inZone(one.why)} {begins(one)}
                    </small>
                  </li>
                ))}
              </ul>
            </>
          )}
          <h3>{W.clusters.leases}</h3>
          {leases.length === 0 && <p class="dim">{W.clusters.noLeases}</p>}
          {leases.map((lease) => (
            <p key={lease.lease}>
              {W.clusters.lease(lease.nodes, clock(lease.until), visible(lease.owner || lease.run))}:{" "}
              {visible(lease.why)}{" "}
              {me.may_change && (
                <Ask
                  label={W.clusters.end}
                  question={W.clusters.endAsk}
                  yes={W.clusters.end}
                  no={W.clusters.no}
                  act={() => end(lease)}
                />
              )}
            </p>
          ))}
          {me.may_change && <Hold cluster={cluster} attempt={attempt} again={again} />}
          {seen?.decisions.length > 0 && (
            <details>
              <summary>{W.clusters.decisions}</summary>
              <ul>
                {seen.decisions.map((one, i) => (
                  <li key={i}>
                    <time datetime={one.at} class="dim">
                      {shortClock(one.at)}
                    </time>{" "}
                    {inZone(one.why)}
                  </li>
                ))}
              </ul>
            </details>
          )}
        </div>
        <div>
          <Facts
            rows={[
              [W.clusters.machine, cluster.vm_size],
              [W.clusters.kind, W.clusters.tier[cluster.tier] || cluster.tier],
              [W.clusters.idleTime, W.clusters.idleAfter(duration(cluster.idle_seconds))],
              [W.money.bys.project, cluster.project],
              [
                W.clusters.decision,
                decision ? (
                  <>
                    {decision.action === "keep" ? W.clusters.keep : W.clusters.zero}, <When at={decision.at} />:{" "}
                    {inZone(decision.why)}
                  </>
                ) : (
                  W.clusters.none
                ),
              ],
              [W.clusters.idleSince, decision?.idle_since && <When at={decision.idle_since} />],
              ...cluster.errors.map((fault) => ["", typeof fault === "string" ? fault : JSON.stringify(fault)]),
            ]}
          />
          {me.may_change && cluster.nodes > 0 && (
            <p>
              <Ask
                label={W.clusters.toZero}
                question={W.clusters.toZeroAsk}
                yes={W.clusters.yes}
                no={W.clusters.no}
                act={toZero}
              />
            </p>
          )}
        </div>
      </div>
      {outcome}
    </section>
  );
}

function Hold({ cluster, attempt, again }) {
  const hold = ({ nodes, hours, why }, close) =>
    attempt(async () => {
      await post(["clusters", cluster.name, "leases"], {
        seconds: Number(hours.value) * 3600,
        nodes: Number(nodes.value),
        why: why.value,
      });
      close();
      again();
      return W.clusters.held;
    });
  return (
    <Unfolding label={W.clusters.hold} submit={hold}>
      {() => (
        <>
          <label>
            {W.clusters.holdNodes}
            <input name="nodes" type="number" min="1" max={cluster.max_nodes} value="1" required />
          </label>
          <label>
            {W.clusters.holdHours}
            <input name="hours" type="number" min="0.25" step="0.25" value="1" required />
          </label>
          <label>
            {W.clusters.holdWhy}
            <input name="why" required />
          </label>
          <button type="submit">{W.clusters.hold}</button>
        </>
      )}
    </Unfolding>
  );
}

/**
 * Nodes by what they did, one above the other, as steps from sample to sample.
 * @param {{ seen: NodesReport["clusters"][number] | undefined, since: string, until: string }} props
 */
function Over({ seen, since, until }) {
  const samples = seen?.samples || [],
    all = (one) => KINDS.reduce((sum, kind) => sum + one[kind], 0),
    most = Math.max(0, ...samples.map(all));
  if (!most) return <p class="dim">{W.clusters.samples}</p>;
  const sampled = samples
    .slice(-10)
    .map((one) => `${shortClock(one.at)} ${W.run.nodesNow(all(one))}`)
    .join(", ");
  return (
    <>
      <Drawing
        label={`${W.clusters.over}: ${sampled}`}
        height={122}
        draw={(width) => steps(samples, most, since, until, width)}
      />
      <ul class="phase-list">
        {KINDS.filter((kind) => samples.some((one) => one[kind])).map((kind) => (
          <li key={kind}>
            <i class={`node-${kind}`}></i>
            {W.clusters.kinds[kind]}
          </li>
        ))}
      </ul>
    </>
  );
}

function steps(samples, most, since, until, width) {
  const from = new Date(since).getTime(),
    to = new Date(until).getTime();
  const across = (at) => 24 + ((Math.max(from, new Date(at).getTime()) - from) / (to - from)) * (width - 28);
  const bars = samples.flatMap((one, i) => {
    const x = across(one.at),
      wide = Math.max(0.6, across(samples[i + 1]?.at ?? until) - x);
    let top = 100;
    return KINDS.filter((kind) => one[kind]).map((kind) => {
      const height = (one[kind] / most) * 85;
      top -= height;
      return <rect key={`${i}${kind}`} class={`node-${kind}`} x={x} y={top} width={wide} height={height} />;
    });
  });
  return (
    <>
      <text x="0" y="22">
        {most}
      </text>
      <text x="0" y="100">
        0
      </text>
      {bars}
      <text x="24" y="117">
        {shortClock(from)}
      </text>
      <text x={width - 4} y="117" text-anchor="end">
        {shortClock(until)}
      </text>
    </>
  );
}

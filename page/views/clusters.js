// The clusters: how many nodes, what they do, and why they stay.
import { get, post } from "../api.js";
import { duration, number, visible } from "../format.js";
import { html } from "../html.js";
import { useLive } from "../live.js";
import { Ask, Facts, Trouble, useOutcome, When } from "../parts.js";
import { W } from "../words.js";

export function Clusters({ me }) {
  const { value, error, again } = useLive((signal) => get(["clusters"], {}, { signal }), [], { soon: 5000 });
  return html`<section><h1 tabindex="-1">${W.clusters.title}</h1>
    ${error && value && html`<p class="notice bad" role="alert">${visible(error.message)}</p>`}<${Trouble} error=${error} value=${value} />
    ${value?.length === 0 && html`<p class="notice">${W.clusters.empty}</p>`}
    <div class="cards">${value?.map((cluster) => html`<${Cluster} key=${cluster.name} cluster=${cluster} me=${me} again=${again} />`)}</div></section>`;
}

function Cluster({ cluster, me, again }) {
  const [outcome, attempt] = useOutcome(), idle = Math.max(0, cluster.nodes - cluster.busy_nodes), { decision } = cluster;
  const toZero = () => attempt(async () => { await post(["clusters", cluster.name, "scale-to-zero"], undefined, { force: "true" }); again(); return W.clusters.done; });
  return html`<section class="card"><h2>${visible(cluster.name)}</h2>
    <p>${W.clusters.nodes(number(cluster.nodes), number(cluster.max_nodes))}: ${W.clusters.busy(cluster.busy_nodes)}, ${W.clusters.idle(idle)}</p>
    <div class="nodes" aria-hidden="true">${Array.from({ length: Math.min(64, cluster.max_nodes) }, (_, i) => html`<i key=${i} class=${i < cluster.busy_nodes ? "busy" : i < cluster.nodes ? "idle" : ""}></i>`)}</div>
    <${Facts} rows=${[
      ["VM", cluster.vm_size], ["", W.clusters.tier[cluster.tier] || cluster.tier], ["", W.clusters.idleAfter(duration(cluster.idle_seconds))],
      [W.clusters.decision, decision ? html`${decision.action === "keep" ? W.clusters.keep : W.clusters.zero}, <${When} at=${decision.at} />: ${visible(decision.why)}` : W.clusters.none],
      [W.clusters.idleSince, decision?.idle_since && html`<${When} at=${decision.idle_since} />`],
    ]} />
    ${me.may_change && cluster.nodes > 0 && html`<p><${Ask} label=${W.clusters.toZero} question=${W.clusters.toZeroAsk} yes=${W.clusters.yes} no=${W.clusters.no} act=${toZero} /></p>`}${outcome}</section>`;
}

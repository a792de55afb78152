"""Tables of clusters, their waiting runs, scaling decisions and leases, and the changes of a clusters file."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from rich.console import Group, RenderableType

from ..api.phases import duration
from ..results import ClusterSteps
from ..terminal_text import Text, one_line
from . import people, tables
from .tables import clock, grid, titled_table

MOST_WAITING = 10  # of each cluster


def many(rows: list[dict[str, Any]]) -> RenderableType:
    columns = ["cluster", "size", "nodes", "busy", "range", "decision"]
    table = titled_table("Clusters", "", rows, _cluster_row, columns)
    waiting = [{**run, "cluster": row["name"]} for row in rows for run in row.get("waiting", ())[:MOST_WAITING]]
    if not waiting:
        return table
    count = sum(row.get("waiting_runs", 0) for row in rows)
    more = f", {len(waiting)} of {count} shown; more: `runs --state queued`" if count > len(waiting) else ""
    names = ["run", "cluster", "for", "begins", "why"]
    return Group(table, titled_table("Waiting", f"the longest first{more}", waiting, _waiting_row, names))


def _waiting_row(run: dict[str, Any]) -> list[Text]:
    now = datetime.now(UTC)
    seconds = (now - datetime.fromisoformat(run["since"])).total_seconds()
    begins = tables.begins(run.get("expected_at"), run.get("after", ()), now) or "not known"
    return [*map(Text, (run["run"], run["cluster"], duration(seconds), begins, one_line(run["why"])))]


def decisions(cluster: str, rows: list[dict[str, Any]]) -> RenderableType:
    """Return the scaling decisions about a cluster, newest first."""
    table = grid()
    for row in rows:
        by = people.known(row.get("asked_by") or "", row.get("asked_by_id") or "")
        words = f"{row['action']}, {row['code']}: {row['why']}{f' Asked by {by}.' if by else ''}"
        table.add_row(Text(f"  {clock(row['at'])}", "dim"), Text(one_line(words)))
    return Group(Text(cluster, "bold"), table)


def lease(held: dict[str, Any], hint: str = "") -> RenderableType:
    """Return one lease as a line: id, nodes, cluster and end, and the hint below."""
    nodes = f"{held['nodes']} node{'s' if held['nodes'] > 1 else ''} of {held['cluster']}"
    line = Text.assemble((held["lease"], "bold"), f"  {nodes} until {clock(held['released_at'] or held['until'])}")
    return Group(line, *([Text(hint, "dim")] if hint else []))


def leases(rows: list[dict[str, Any]]) -> RenderableType:
    return titled_table("Leases", "", rows, _lease_row, ["lease", "cluster", "nodes", "until", "owner", "why"])


def steps(plan: ClusterSteps, done: bool) -> RenderableType:
    """Return the changes of a clusters file, one line for each."""
    verbs = {"create": "created" if done else "create", "change": "changed" if done else "change"}
    lines = []
    for step in plan["steps"]:
        heading = (f"{step['cluster']}: {verbs.get(step['action'], 'impossible')}", "bold")
        lines.append(Text.assemble(heading, (f"  {step['why']}", "red") if step["why"] else ""))
        for what, change in step["changes"].items():
            if change["to"] in ("", 0) and change["from"] is None:
                continue
            before = f"{'none' if change['from'] == '' else change['from']} -> " if change["from"] is not None else ""
            lines.append(Text(one_line(f"  {what}: {before}{'none' if change['to'] == '' else change['to']}"), "dim"))
    if others := plan["not_in_the_file"]:
        lines.append(Text(f"Not in the file, and not changed: {', '.join(others)}", "dim"))
    return Group(*(lines if plan["steps"] else [Text("The clusters match the file."), *lines]))


def _cluster_row(cluster: dict[str, Any]) -> list[Text]:
    decision = cluster.get("decision") or {}
    words = f"{decision['action']}: {decision['why']}" if decision else "not checked yet"
    if decision.get("dry_run"):
        words = f"dry run, {words}"
    words = one_line(" ".join([words, *(f"[!] {finding}" for finding in decision.get("findings", ()))]))
    extent = f"{cluster['min_nodes']}-{cluster['max_nodes']}"
    return [
        Text(cluster["name"]),
        Text(", ".join(filter(None, (cluster.get("vm_size"), str(cluster.get("tier") or "").replace("_", " "))))),
        Text(str(cluster["nodes"])),
        Text(str(cluster["busy_nodes"])),
        Text(extent),
        Text(words),
    ]


def _lease_row(lease: dict[str, Any]) -> list[Text]:
    why = f"after run {lease['run']}, {lease['why']}" if lease["run"] else lease["why"]
    owner = one_line(lease["owner"]) or "a key"
    names = Text(lease["lease"]), Text(lease["cluster"]), Text(str(lease["nodes"])), Text(clock(lease["until"]))
    return [*names, Text(owner), Text(one_line(why))]

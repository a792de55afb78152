"""Eviction of a node of the local cloud, as Azure evicts a low-priority node."""

from __future__ import annotations

from typing import Any

import httpx

from ..errors import CliError
from ..results import EvictedNode
from ..setup.profiles import Profile

ANSWER_SECONDS = 30.0


def preempt(profile: Profile, run: dict[str, Any], node: int, notice: float = 0.0) -> EvictedNode:
    """Evict a node of the local cloud, announced `notice` seconds before. The node's job fails, as in Azure ML.

    `node` is the number of a member of an elastic run, or the index of a node of the job. Raises CliError if no such
    node is running.
    """
    members = {m["member"]: m["job"] for m in (run.get("elastic") or {}).get("members", [])}
    job = members.get(node, run["run"])
    with httpx.Client(base_url=profile.azureml, verify=profile.certs, timeout=ANSWER_SECONDS) as azureml:
        cluster = azureml.get(f"/control/clusters/{run['cluster']}").raise_for_status().json()
        at_work = [node_row for node_row in cluster["nodes"] if _runs(node_row["job"], job, plain=not members)]
        nodes, job = [node_row["index"] for node_row in at_work], at_work[0]["job"] if at_work else job
        place = 0 if members else node
        if (members and node not in members) or place >= len(nodes):
            raise CliError(f"Run {run['run']} has no running node {node}.", "not_running")
        eviction = {"node": nodes[place], "notice": notice}
        azureml.post(f"/control/clusters/{run['cluster']}/preempt", json=eviction).raise_for_status()
    return {"run": run["run"], "job": job, "node": node}


def _runs(node_job: str | None, job: str, plain: bool) -> bool:
    """Return whether a node works on this job. For a run with one job at a time (`plain`), a later job of the run
    (NAME-a2) counts too."""
    return node_job == job or (plain and bool(node_job) and str(node_job).rpartition("-a")[0] == job)

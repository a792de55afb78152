"""The commands status, clusters, pause, lease, leases, extend and release."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from .. import show
from ..api import azure_workspace as workspaces
from ..api import run_list
from ..errors import CliError, NotFound
from ..files import batchai_documents, clusters_file
from ..results import ClusterSteps, prints
from ..session import Session, command, user_path
from ..setup import tab_completion
from . import options
from .values import seconds

ClusterName = Annotated[
    str,
    Argument(
        metavar="CLUSTER", help="Name of the cluster, as `clusters` shows it.", autocompletion=tab_completion.clusters
    ),
]
PausedCluster = Annotated[
    str,
    Argument(
        metavar="CLUSTER",
        help="Name of the cluster. Default: the one of the project.json in this folder.",
        autocompletion=tab_completion.clusters,
    ),
]
Force = Annotated[bool, Option("--force", help="Do not wait for the idle time. Running work is not stopped.")]


class ClusterVerb(StrEnum):
    list = "list"
    plan = "plan"
    apply = "apply"


ClustersWhat = Annotated[
    ClusterVerb, Argument(metavar="list|plan|apply", help="List the clusters, or plan or apply the clusters file.")
]
ClustersFile = Annotated[Path, Option("--file", metavar="FILE", help="The clusters file.")]
DecisionsOf = Annotated[
    str,
    Option(
        "--history",
        metavar="CLUSTER",
        help="Decisions about this cluster, newest first.",
        autocompletion=tab_completion.clusters,
    ),
]
WorkspaceId = Annotated[
    str,
    Option(
        "--workspace", metavar="ID", help="Resource id of the workspace. Default: the workspace of the local cloud."
    ),
]
For = Annotated[str, Option("--for", metavar="TIME", help="Time from now: seconds, or 90m, 2h, 1d.")]
LeaseNodes = Annotated[int, Option("--nodes", min=1, max=1000, metavar="N", help="How many nodes.")]
Why = Annotated[str, Option(metavar="TEXT", help="The reason, shown to anyone who asks why the cluster is up.")]
LeaseId = Annotated[
    str, Argument(metavar="LEASE", help="A lease, as `leases` shows it.", autocompletion=tab_completion.leases)
]


@command
@prints("GET status")
def status(session: Session) -> None:
    """Show queues, poison messages, drops, runs and clusters.

    Example: trainyard status --json
    """
    answer = session.api.get("status")
    session.print_result(answer, show.health.status(answer))


@command
@prints("GET clusters", ClusterSteps, "GET nodes > clusters > decisions")
def clusters(
    session: Session,
    what: ClustersWhat = ClusterVerb.list,
    file: ClustersFile = Path("clusters.yaml"),
    workspace: WorkspaceId = "",
    history: DecisionsOf = "",
) -> None:
    """List the clusters and why each is up, or apply a file that declares them.

    `plan` shows how the workspace differs from the file; `apply` changes the workspace, with your own rights in
    Azure, never with those of the app. Clusters that the file does not name stay as they are, and no cluster is
    ever deleted.

    Example: trainyard clusters plan --file clusters.yaml
    """
    if history:
        decisions = {row["cluster"]: row["decisions"] for row in session.api.get("nodes", hours=1)["clusters"]}
        if history not in decisions:
            raise NotFound(
                f"No check has found a cluster {history!r}. Checked clusters: {', '.join(sorted(decisions)) or 'none'}."
            )
        session.print_result(decisions[history], show.clusters.decisions(history, decisions[history]))
        return
    if what is ClusterVerb.list:
        answer = session.api.get("clusters")
        session.print_result(answer, show.clusters.many(answer))
        return
    declared = clusters_file.read(_text(file), str(file))
    with workspaces.opened(session.profile, workspace) as azure:
        existing = azure.clusters()
        steps = clusters_file.plan(declared, existing)
        if what is ClusterVerb.apply:
            _apply(azure, steps, existing)
    others = sorted(set(existing) - {cluster.name for cluster in declared})
    plan: ClusterSteps = {"steps": [step.as_step() for step in steps], "not_in_the_file": others}
    session.print_result(plan, show.clusters.steps(plan, done=what is ClusterVerb.apply))
    if any(step.action == "impossible" for step in steps):
        raise CliError("Some clusters can't be changed to match the file; see above.")


def _apply(azure: workspaces.Workspace, steps: list[clusters_file.Step], existing: dict[str, Any]) -> None:
    """Perform the steps, except impossible ones. The etag makes a step fail if the cluster changes between the read
    and the write."""
    like = next((c for c in existing.values() if c.get("identity")), next(iter(existing.values()), None))
    for step in steps:
        name = step.cluster.name
        if step.action == "create":
            azure.put(name, clusters_file.body(step, None, like or {"location": azure.location()}))
        elif step.action == "change":
            present, etag = azure.get(name)
            azure.put(name, clusters_file.body(step, present, None), etag)


def _text(file: Path) -> str:
    try:
        return user_path(file).read_text("utf-8")
    except FileNotFoundError as exc:
        raise NotFound(f"{file} does not exist. Name your file with --file. docs/clusters.md has an example.") from exc
    except (OSError, UnicodeDecodeError) as exc:
        raise CliError(f"{file} can't be read: {exc}.") from exc


@command
@prints("POST clusters/{cluster}/scale-to-zero")
def pause(session: Session, cluster: PausedCluster = "", force: Force = False) -> None:
    """Scale a cluster to zero nodes now.

    The command is refused, with the reason, while something needs the cluster. In a folder with a project.json it
    needs no name, ends the leases on the cluster of the project, and does not wait for the idle time.

    Example: trainyard pause cpu-cluster
    """
    if not cluster:
        cluster = batchai_documents.project_cluster(user_path(Path()))
        held = [lease for lease in session.api.get("leases") if lease["cluster"] == cluster]
        for lease in held:
            session.api.delete("leases", lease["lease"])
            session.remark(f"{lease['lease']} is over.")
        force = True  # like 02_PauseCluster.ps1, which also left the jobs alone and waited for nothing else
    answer = session.api.post("clusters", cluster, "scale-to-zero", force=force)
    session.print_result(answer, f"{answer['cluster']}: {answer['action']}. {answer['why']}")


@command
@prints("POST clusters/{cluster}/leases")
def lease(
    session: Session,
    cluster: ClusterName,
    length: For = "1h",
    nodes: LeaseNodes = 1,
    why: Why = "",
) -> None:
    """Keep nodes of a cluster warm for some time.

    You pay for the nodes until the lease ends, whether they are used or not; `release` ends it earlier.

    Example: trainyard lease cpu-cluster --for 2h --nodes 1 --why "tuning lr"
    """
    if not why.strip():
        raise typer.BadParameter(
            "give a reason; Trainyard shows it to anyone who asks why the cluster is up.", param_hint="--why"
        )
    body = {"seconds": seconds(length), "nodes": nodes, "why": why}
    answer = session.api.post("clusters", cluster, "leases", body=body)
    session.print_result(
        answer, show.clusters.lease(answer, f"End it sooner with `{session.program} release {answer['lease']}`.")
    )


@command
@prints("GET leases")
def leases(session: Session, mine: options.Mine = False) -> None:
    """List the leases that hold nodes now.

    Example: trainyard leases --mine
    """
    answer: Any = session.api.get("leases")
    answer = run_list.own_rows(session.api, answer) if mine else answer
    session.print_result(answer, show.clusters.leases(answer))


@command
@prints("POST leases/{lease}/extend")
def extend(session: Session, lease: LeaseId, length: For = "1h") -> None:
    """Extend a lease to this time from now.

    An administrator sets the maximum duration of a lease.

    Example: trainyard extend 20260131T080000-0123abcd --for 2h
    """
    answer = session.api.post("leases", lease, "extend", body={"seconds": seconds(length)})
    session.print_result(answer, show.clusters.lease(answer))


@command
@prints("DELETE leases/{lease}")
def release(session: Session, lease: LeaseId) -> None:
    """End a lease now; its nodes are released unless something else needs them.

    Example: trainyard release 20260131T080000-0123abcd
    """
    answer = session.api.delete("leases", lease)
    session.print_result(answer, f"{answer['lease']} is over.")

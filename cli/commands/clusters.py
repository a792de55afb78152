"""status, clusters, pause, lease, leases, extend, release."""

from __future__ import annotations

from pathlib import Path

import typer

from .. import batchai, show
from ..session import Session, command, user_path
from . import options
from .runs import seconds


@command
def status(session: Session) -> None:
    """Show queues, poison messages, drops, runs and clusters.

    Example: trainyard status --json
    """
    answer = session.api.get("status")
    session.tell(answer, show.status(answer))


@command
def clusters(session: Session) -> None:
    """List the clusters, and why each is up or at zero.

    Example: trainyard clusters
    """
    answer = session.api.get("clusters")
    session.tell(answer, show.clusters(answer))


@command
def pause(session: Session, cluster: options.PausedCluster = "", force: options.Force = False) -> None:
    """Bring a cluster to zero nodes now.

    It is refused, with the reason, while something needs the cluster. In a folder with a project.json it needs no name,
    ends the leases that hold the project's cluster, and waits for no idle time.

    Example: trainyard pause cpu-cluster
    """
    if not cluster:
        cluster = batchai.project_cluster(user_path(Path()))
        held = [lease for lease in session.api.get("leases") if lease["cluster"] == cluster]
        for lease in held:
            session.api.delete("leases", lease["lease"])
            session.remark(f"{lease['lease']} is over.")
        force = True  # as 02_PauseCluster.ps1, which left the jobs alone too, and waited for nothing else
    answer = session.api.post("clusters", cluster, "scale-to-zero", force=force)
    session.tell(answer, f"{answer['cluster']}: {answer['action']}. {answer['why']}")


@command
def lease(
    session: Session,
    cluster: options.ClusterName,
    length: options.For = "1h",
    nodes: options.LeaseNodes = 1,
    why: options.Why = "",
) -> None:
    """Keep nodes of a cluster warm for some time.

    The nodes are paid for until the lease is over, whatever they do; `release` ends it sooner.

    Example: trainyard lease cpu-cluster --for 2h --nodes 1 --why "tuning lr"
    """
    if not why.strip():
        raise typer.BadParameter("say why, for whoever asks why the cluster is up.", param_hint="--why")
    body = {"seconds": seconds(length), "nodes": nodes, "why": why}
    answer = session.api.post("clusters", cluster, "leases", body=body)
    session.tell(answer, show.lease(answer, f"End it sooner with `{session.program} release {answer['lease']}`."))


@command
def leases(session: Session) -> None:
    """List the leases that hold nodes now.

    Example: trainyard leases
    """
    answer = session.api.get("leases")
    session.tell(answer, show.leases(answer))


@command
def extend(session: Session, lease: options.LeaseId, length: options.For = "1h") -> None:
    """Let a lease go on for so long from now.

    An administrator sets how long it may last in all.

    Example: trainyard extend 20260131T080000-0123abcd --for 2h
    """
    answer = session.api.post("leases", lease, "extend", body={"seconds": seconds(length)})
    session.tell(answer, show.lease(answer))


@command
def release(session: Session, lease: options.LeaseId) -> None:
    """End a lease now; its nodes go unless something else needs them.

    Example: trainyard release 20260131T080000-0123abcd
    """
    answer = session.api.delete("leases", lease)
    session.tell(answer, f"{answer['lease']} is over.")

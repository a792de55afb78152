"""status, clusters, pause."""

from __future__ import annotations

from .. import show
from ..session import Session, command
from . import options


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
def pause(session: Session, cluster: options.ClusterName, force: options.Force = False) -> None:
    """Bring a cluster to zero nodes now.

    It is refused, with the reason, while something needs the cluster.

    Example: trainyard pause cpu-cluster
    """
    answer = session.api.post("clusters", cluster, "scale-to-zero", force=force)
    session.tell(answer, f"{answer['cluster']}: {answer['action']}. {answer['why']}")

"""The messages of clusters."""

from __future__ import annotations

from dataclasses import dataclass

from shared.kernel.message import CHECKS, Message


@dataclass(frozen=True)
class CheckCluster(Message, queue=CHECKS, handler="shared.clusters.scaling:scale_one"):
    """Decide about a cluster on which a run started or ended. The timer also decides about all clusters."""

    cluster: str

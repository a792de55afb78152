"""Ask for a look at a cluster."""

from __future__ import annotations

from shared.kernel.places import CLUSTER_LOOKS
from shared.system import System

LOOK_SECONDS = 5.0  # a thousand runs that end together cost one look at their cluster


def ask_for_look(system: System, cluster: str, delay: float = 0.0) -> None:
    system.queues.send(CLUSTER_LOOKS, {"cluster": cluster}, delay)


def ask_for_look_soon(system: System, cluster: str) -> None:
    """Ask for a look in some seconds, unless one that comes as late was asked for already."""
    if system.sweeps.claim_look(cluster, system.clock(), LOOK_SECONDS):
        ask_for_look(system, cluster, LOOK_SECONDS)

"""Leases: dated promises to keep a cluster's nodes warm, each with an owner and a reason. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

LEASE_ID = re.compile(r"[0-9]{8}T[0-9]{6}-[0-9a-f]{8}")
LONGEST_POSSIBLE = timedelta(days=31)  # no administrator can allow more


@dataclass(frozen=True)
class LeaseSpec:
    """A request to keep nodes up for some time."""

    nodes: int
    seconds: float
    why: str


@dataclass(frozen=True)
class Lease:
    """`nodes` nodes of a cluster stay up until `until`, or until the release of the lease. `run` is the requesting
    run.
    """

    id: str
    cluster: str
    nodes: int
    owner: str
    why: str
    made_at: datetime
    until: datetime
    released_at: datetime | None = None
    released_by: str = ""
    run: str = ""
    project: str = ""  # the cluster's project when the lease was made
    owner_id: str = ""  # object id in Entra ID of the owner; released_by_id is that of the releaser
    released_by_id: str = ""

    @property
    def ended_at(self) -> datetime:
        """Return when the lease ends or ended."""
        return min(self.until, self.released_at) if self.released_at else self.until

    def holds(self, now: datetime) -> bool:
        return self.made_at <= now < self.ended_at


def lease_id(made_at: datetime, what: str) -> str:
    """Return the id of a lease. Equal moments and texts give equal ids. Ids sort by time, to the second."""
    return f"{made_at.astimezone(UTC):%Y%m%dT%H%M%S}-{hashlib.sha256(what.encode()).hexdigest()[:8]}"


def nodes_held(leases: Iterable[Lease], now: datetime) -> int:
    """Return how many nodes the leases hold together. Leases share nodes, so the largest lease counts."""
    return max((lease.nodes for lease in leases if lease.holds(now)), default=0)


def words(leases: Iterable[Lease]) -> str:
    """Describe the holders of the nodes, the end and the reason: the longest lease, and the number of other leases."""
    latest_first = sorted(leases, key=lambda lease: lease.until, reverse=True)
    first = latest_first[0]
    who = f"Leased by {first.owner or 'someone with a key'}" if not first.run else f"Kept warm after run {first.run}"
    others = f"; {len(latest_first) - 1} more leases" if len(latest_first) > 1 else ""
    nodes = "1 node" if first.nodes == 1 else f"{first.nodes} nodes"
    return f"{who}: {nodes} until {first.until:%Y-%m-%d %H:%M} UTC ({first.why}{others})."

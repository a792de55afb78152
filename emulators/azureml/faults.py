"""What goes wrong on purpose: requests that are refused or slow, quotas that are reached, nodes that never come.

Set over `PUT /control/faults`. Without it nothing here does anything.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatch
from typing import Any

from aiohttp import web

from emulators.azureml import checks
from emulators.azureml.errors import ArmError, BadRequest
from emulators.azureml.models import Cluster, Json, NodeState

LONGEST_SECONDS = 600
MOUNTS = ("shared", "own")
SPOT_CORES = "lowPriorityCores"  # the one quota that all Spot nodes share
_SIZE = re.compile(r"(?:Standard|Basic)_([A-Za-z]+)(\d+)(?:-\d+)?([a-z]*)(?:_[A-Z]\w*?)?(?:_(v\d+))?")
_GONE = (NodeState.LEAVING, NodeState.PREEMPTED)


@dataclass
class RequestFault:
    """What becomes of the next `times` requests of this method whose path matches: it waits, then is refused."""

    method: str
    path: str  # as fnmatch reads it, below the workspace: computes/gpu*
    status: int = 0  # 0: it is only slow
    code: str = "Fault"
    message: str = "A fault that was asked for."
    seconds: float = 0.0
    times: int = 1_000_000

    def fits(self, request: web.Request) -> bool:
        path = request.path.lower().partition("/workspaces/")[2].partition("/")[2]
        return self.times > 0 and request.method == self.method and fnmatch(path, self.path.lower())


@dataclass
class Faults:
    requests: list[RequestFault] = field(default_factory=list)
    allocations: dict[str, Json] = field(default_factory=dict)  # cluster in lower case: the error of every allocation
    quotas: dict[str, int] = field(default_factory=dict)  # family: cores
    own_mounts: bool = False  # each node of a job that starts now has a view of its own: views.py

    def replace(self, document: Json) -> None:
        """Take what a request says instead of what there was."""
        requests, allocations = document.get("requests") or [], checks.mapping(document, "allocations")
        if not isinstance(requests, list):
            raise BadRequest("'requests' must be a list of faults.")
        try:
            self.requests = [RequestFault(**fault) for fault in requests]
        except TypeError as error:
            raise BadRequest(
                f"A fault of a request has method, path, status, code, message, seconds, times: {error}."
            ) from None
        if (mounts := document.get("mounts", "shared")) not in MOUNTS:
            raise BadRequest(f"'mounts' is {mounts!r}; choose {' or '.join(MOUNTS)}.")
        self.own_mounts = mounts == "own"
        self.allocations = {name.lower(): dict(error) for name, error in allocations.items()}
        self.quotas = {family: int(cores) for family, cores in checks.mapping(document, "quotas").items()}

    async def meet(self, request: web.Request) -> None:
        """Make a request wait, or raise what it is refused with."""
        if fault := next((each for each in self.requests if each.fits(request)), None):
            fault.times -= 1
            await asyncio.sleep(min(fault.seconds, LONGEST_SECONDS))
            if fault.status:
                raise ArmError(fault.status, fault.code, fault.message)

    def allotted(self, cluster: Cluster, clusters: Iterable[Cluster], nodes: int) -> tuple[int, Json | None]:
        """How many of so many further nodes the cluster gets, and the error if it is not all of them."""
        if error := self.allocations.get(cluster.name.lower()):
            return 0, error
        family, cores = family_of(cluster)
        if (limit := self.quotas.get(family)) is None:
            return nodes, None
        used = sum(cores_of(other) for other in clusters if family_of(other)[0] == family)
        given = max(0, min(nodes, (limit - used) // cores))
        return given, None if given == nodes else _quota_error(cluster, family, limit, used, (nodes - given) * cores)


def family_of(cluster: Cluster) -> tuple[str, int]:
    """The quota that the cluster's nodes count against, and the cores of one."""
    size = str(cluster.properties["properties"].get("vmSize") or "")
    match = _SIZE.fullmatch(size)
    letters, cores, features, version = match.groups() if match else ("Other", "1", "", None)
    family = f"standard{letters}{features.upper()}{version or ''}Family"
    return SPOT_CORES if cluster.low_priority else family, int(cores)


def cores_of(cluster: Cluster) -> int:
    return family_of(cluster)[1] * sum(node.state not in _GONE for node in cluster.nodes)


def _quota_error(cluster: Cluster, family: str, limit: int, used: int, more: int) -> dict[str, Any]:
    message = (
        f"Operation could not be completed as it results in exceeding approved {family} Cores quota. Additional "
        f"details - Deployment Model: Resource Manager, Location: {cluster.location}, Current Limit: {limit}, Current "
        f"Usage: {used}, Additional Required: {more}, (Minimum) New Limit Required: {used + more}."
    )
    return {"code": "QuotaExceeded", "message": message}

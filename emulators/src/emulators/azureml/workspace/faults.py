"""Injected faults: refused or slow requests, exhausted quotas, and nodes that are never allocated.

`PUT /control/faults` sets the faults. By default there are none.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from fnmatch import fnmatch
from typing import Any

from aiohttp import web

from emulators.azureml.kernel import checks
from emulators.azureml.kernel.errors import ArmError, BadRequest, among
from emulators.azureml.kernel.models import Cluster, Json, NodeState

LONGEST_SECONDS = 600
MOUNTS = ("shared", "own")
SPOT_CORES = "lowPriorityCores"  # the single quota that all Spot nodes share
_SIZE = re.compile(r"(?:Standard|Basic)_([A-Za-z]+)(\d+)(?:-\d+)?([a-z]*)(?:_[A-Z]\w*?)?(?:_(v\d+))?")
_GONE = (NodeState.LEAVING, NodeState.PREEMPTED)


@dataclass
class RequestFault:
    """A fault of the next `times` requests with this method and a matching path: each waits `seconds`, and is then
    refused if `status` is not 0."""

    method: str
    path: str  # an fnmatch pattern below the workspace: computes/gpu*
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
    own_mounts: bool = False  # each node of a newly started job has its own view: views.py

    def replace(self, document: Json) -> None:
        """Replace all faults by the request's. Raises BadRequest for an invalid fault, and then changes nothing."""
        if unknown := document.keys() - {"requests", "allocations", "quotas", "mounts"}:
            raise BadRequest(f"There is no {among(unknown)}; there are requests, allocations, quotas and mounts.")
        requests, allocations = document.get("requests") or [], checks.mapping(document, "allocations")
        if not isinstance(requests, list):
            raise BadRequest("'requests' must be a list of faults.")
        if (mounts := document.get("mounts", "shared")) not in MOUNTS:
            raise BadRequest(f"'mounts' is {mounts!r:.80}; choose {' or '.join(MOUNTS)}.")
        quotas = checks.mapping(document, "quotas")
        read = (
            [_request_fault(fault) for fault in requests],
            {name.lower(): _allocation(allocations, name) for name in allocations},
            {family: checks.int32(quotas, family, 0, 0) for family in quotas},
        )
        self.requests, self.allocations, self.quotas = read
        self.own_mounts = mounts == "own"

    async def meet(self, request: web.Request) -> None:
        """Apply the first matching fault to a request: wait, then raise the fault's error, if any."""
        if fault := next((each for each in self.requests if each.fits(request)), None):
            fault.times -= 1
            await asyncio.sleep(fault.seconds)
            if fault.status:
                raise ArmError(fault.status, fault.code, fault.message)

    def allotted(self, cluster: Cluster, clusters: Iterable[Cluster], nodes: int) -> tuple[int, Json | None]:
        """Return how many of the requested nodes the cluster gets, and an error if it gets fewer."""
        if error := self.allocations.get(cluster.name.lower()):
            return 0, error
        family, cores = family_of(cluster)
        if (limit := self.quotas.get(family)) is None:
            return nodes, None
        used = sum(cores_of(other) for other in clusters if family_of(other)[0] == family)
        given = max(0, min(nodes, (limit - used) // cores))
        return given, None if given == nodes else _quota_error(cluster, family, limit, used, (nodes - given) * cores)


def _request_fault(said: Any) -> RequestFault:
    known = [each.name for each in fields(RequestFault)]
    if not isinstance(said, dict) or said.keys() - set(known):
        raise BadRequest(f"A fault of a request is an object with {', '.join(known)}, not {said!r:.80}.")
    for key in ("method", "path"):
        checks.text(said, key)
    for key in ("code", "message"):
        checks.optional_text(said, key)
    status, seconds = checks.int32(said, "status", 0, 0), said.get("seconds")
    if status and not 400 <= status <= 599:
        raise BadRequest(f"status is {status}; it must be that of an error, 400 to 599, or 0 for a slow request.")
    if seconds is not None and (type(seconds) not in (int, float) or not 0 <= seconds <= LONGEST_SECONDS):
        raise BadRequest(f"seconds is {seconds!r:.80}; it must be a number up to {LONGEST_SECONDS}.")
    if "times" in said:
        checks.int32(said, "times", 0, 0)
    return RequestFault(**{key: value for key, value in said.items() if value is not None})


def _allocation(said: Json, name: str) -> Json:
    """Return the error for a cluster's failed allocations, from the fault's code and message."""
    error = checks.mapping(said, name)
    for key in ("code", "message"):
        checks.text(error, key)
    return error


def family_of(cluster: Cluster) -> tuple[str, int]:
    """Return the quota that the cluster's nodes count against, and the number of cores per node."""
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

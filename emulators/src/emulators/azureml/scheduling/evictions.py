"""Evictions of nodes: announced first, as Azure announces them to the machines of a scale set, then carried out."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

from aiohttp import web

from emulators.azureml.bodies.responses import NODES_PATH
from emulators.azureml.kernel.errors import ArmError, NotFound
from emulators.azureml.kernel.models import Json, NodeState
from emulators.azureml.scheduling.scheduler import Scheduler
from emulators.azureml.workspace.workspace import Workspace

DOCUMENT, NAME = "metadata/scheduledevents", "metadata/instance/compute/name"
VERSIONS = ("2020-07-01", "2019-08-01", "2019-04-01", "2019-01-01", "2017-11-01", "2017-08-01")
LONGEST_NOTICE_SECONDS = 3600.0


@dataclass(frozen=True)
class Announced:
    """One announced eviction, an event of the Scheduled Events document."""

    id: str
    cluster: str
    node: str
    not_before: datetime

    def as_json(self) -> Json:
        return {
            "EventId": self.id,
            "EventType": "Preempt",
            "ResourceType": "VirtualMachine",
            "Resources": [self.node],
            "EventStatus": "Scheduled",
            "NotBefore": format_datetime(self.not_before, usegmt=True),
            "Description": "",
            "EventSource": "Platform",
            "DurationInSeconds": -1,
        }


class Evictions:
    """Evicts nodes, with or without a notice, and tells nodes about the announced evictions."""

    def __init__(self, workspace: Workspace, scheduler: Scheduler) -> None:
        self._workspace, self._scheduler = workspace, scheduler
        self._announced: dict[str, Announced] = {}  # by node
        self._incarnation = 1
        self._tasks: set[asyncio.Task[None]] = set()

    def evict(self, cluster: str, which: int | str, requeues: bool, notice: float) -> Json:
        """Evict a node, announced `notice` seconds before. Returns the node and its job. A second call does nothing
        more."""
        if not notice:
            return self._scheduler.preempt(cluster, which, requeues)
        node = self._scheduler.find(cluster, which)
        if node.id not in self._announced:
            until = datetime.now(UTC) + timedelta(seconds=notice)
            self._announced[node.id] = Announced(str(uuid.uuid4()).upper(), cluster.lower(), node.id, until)
            self._incarnation += 1
            task = asyncio.create_task(self._evict(cluster, node.id, requeues, notice))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return {"node": node.id, "job": node.job, "at": self._announced[node.id].not_before.isoformat()}

    async def _evict(self, cluster: str, node: str, requeues: bool, notice: float) -> None:
        await asyncio.sleep(notice)
        with contextlib.suppress(NotFound):  # meanwhile the node was released, or its cluster deleted
            self._scheduler.preempt(cluster, node, requeues)
        del self._announced[node]
        self._incarnation += 1

    async def stop(self) -> None:
        """Stop all evictions."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # --- what nodes ask -----------------------------------------------------------------------------------------------

    def table(self) -> list[web.RouteDef]:
        return [
            web.get(f"{NODES_PATH}/{{node}}/{DOCUMENT}", self.document),
            web.get(f"{NODES_PATH}/{{node}}/{NAME}", self.name),
        ]

    async def document(self, request: web.Request) -> web.Response:
        """`{"DocumentIncarnation": N, "Events": [...]}`, with the events of the cluster's nodes, as in a scale set."""
        cluster = self._cluster_of(request, VERSIONS)
        events = [event.as_json() for event in self._announced.values() if event.cluster == cluster]
        return web.json_response({"DocumentIncarnation": self._incarnation, "Events": events})

    async def name(self, request: web.Request) -> web.Response:
        self._cluster_of(request, ())
        return web.Response(text=request.match_info["node"])

    def _cluster_of(self, request: web.Request, versions: tuple[str, ...]) -> str:
        """Return the name of the node's cluster. Raises ArmError for a request that the metadata service refuses,
        or for an unknown node."""
        if request.headers.get("Metadata", "").lower() != "true":
            raise ArmError(400, "BadRequest", "Bad request. Required metadata header not specified")
        version = request.query.get("api-version", "")
        if not version or (versions and version not in versions):
            raise ArmError(400, "BadRequest", f"api-version is {version!r}; choose from {', '.join(versions)}.")
        for cluster in self._workspace.clusters.values():
            for node in cluster.nodes:
                if node.id == request.match_info["node"] and node.state is not NodeState.LEAVING:
                    return cluster.name.lower()
        raise ArmError(404, "NotFound", "There is no such node.")

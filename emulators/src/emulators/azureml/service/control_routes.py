"""Routes for tests and administrators that Azure doesn't have: preempt a node, inspect a cluster, inject faults,
list requests."""

from __future__ import annotations

from aiohttp import web

from emulators.azureml.kernel.errors import BadRequest
from emulators.azureml.kernel.models import TERMINAL, Json, Node, Status
from emulators.azureml.scheduling.evictions import LONGEST_NOTICE_SECONDS, Evictions
from emulators.azureml.service.server import Parts, body, number


class ControlRoutes:
    def __init__(self, parts: Parts, evictions: Evictions) -> None:
        self._parts, self._evictions = parts, evictions

    def table(self) -> list[web.RouteDef]:
        return [
            web.get("/control/clusters/{name}", self.get_cluster),
            web.post("/control/clusters/{name}/preempt", self.preempt),
            web.post("/control/jobs/{name}/end", self.end_job),
            web.get("/control/requests", self.list_requests),
            web.put("/control/faults", self.put_faults),
        ]

    async def get_cluster(self, request: web.Request) -> web.Response:
        """`{name, min, max, idle_seconds, nodes: [{index, id, state, job}], queue: [{job, reason}]}`"""
        cluster = self._parts.workspace.cluster(request.match_info["name"])
        queued = self._parts.workspace.on_cluster(cluster.name, frozenset({Status.NOT_STARTED, Status.QUEUED}))
        scale = cluster.scale
        answer = {
            "name": cluster.name,
            "min": scale.minimum,
            "max": scale.maximum,
            "idle_seconds": scale.idle_seconds,
            "nodes": [_node(index, node) for index, node in enumerate(cluster.nodes)],
            "queue": [{"job": job.name, "reason": job.waiting} for job in queued],
        }
        return web.json_response(answer)

    async def preempt(self, request: web.Request) -> web.Response:
        """Evict a node: `{"node": INDEX or ID, "job": "failed" (default) or "queued", "notice": SECONDS}`. `job` is
        the fate of its job; `notice` is the time between the announcement to the node and the eviction (0: no
        announcement). Answers at once. The job has failed as preempted, or is back in the queue, when its
        processes are gone."""
        asked = await body(request)
        which, job = asked.get("node"), asked.get("job", "failed")
        if job not in ("failed", "queued"):
            raise BadRequest(f"'job' is {job!r:.80}; choose failed or queued.")
        if isinstance(which, bool) or not isinstance(which, int | str):
            raise BadRequest(f"'node' is {which!r:.80}; give the node's index in the list of nodes, or its id.")
        notice = asked.get("notice", 0)
        if isinstance(notice, bool) or not isinstance(notice, int | float) or not 0 <= notice <= LONGEST_NOTICE_SECONDS:
            raise BadRequest(f"'notice' is {notice!r:.80}; give seconds, at most {LONGEST_NOTICE_SECONDS:.0f}.")
        return web.json_response(
            self._evictions.evict(request.match_info["name"], which, job == "queued", float(notice))
        )

    async def end_job(self, request: web.Request) -> web.Response:
        """End a job of a simulated cluster now: `{"status": "Completed" or "Failed"}`."""
        job, status = self._parts.workspace.job(request.match_info["name"]), (await body(request)).get("status")
        if status not in (Status.COMPLETED, Status.FAILED):
            raise BadRequest(f"'status' is {status!r:.80}; choose Completed or Failed.")
        if not self._parts.scheduler.simulation.has(job.cluster) or job.status in TERMINAL:
            raise BadRequest(f"Job {job.name} is {job.status} on {job.cluster}; only live simulated jobs can be ended.")
        self._parts.scheduler.simulation.end(job, Status(status))
        return web.json_response({"job": job.name, "status": job.status.value})

    async def put_faults(self, request: web.Request) -> web.Response:
        """Replace all injected faults: `{"requests": [{"method", "path", "status", "code", "message", "seconds",
        "times"}], "allocations": {cluster: {"code", "message"}}, "quotas": {family: cores}, "mounts": "shared"
        or "own"}`."""
        self._parts.workspace.faults.replace(await body(request))
        self._parts.scheduler.wake()
        return web.json_response({})

    async def list_requests(self, request: web.Request) -> web.Response:
        """Answer with the latest requests, oldest first. `?newest=N` limits them to the last N."""
        seen, newest = list(self._parts.recorder.seen), number(request, "newest")
        return web.json_response(seen[-newest:] if newest else seen)


def _node(index: int, node: Node) -> Json:
    return {"index": index, "id": node.id, "state": node.state.value, "job": node.job}

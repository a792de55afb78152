"""Routes of the clusters and their nodes, and of the operations that create and delete clusters."""

from __future__ import annotations

import asyncio
import re

from aiohttp import web

from emulators.azureml.bodies import responses
from emulators.azureml.kernel.checks import mapping
from emulators.azureml.kernel.config import PROVIDER
from emulators.azureml.kernel.errors import BadRequest, Conflict
from emulators.azureml.kernel.models import Json
from emulators.azureml.service.arm import LATEST
from emulators.azureml.service.operations import POLL_HEADER
from emulators.azureml.service.server import LOCATION, WORKSPACE, Parts, body
from emulators.azureml.workspace.instances import KIND

COMPUTE_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9-]{1,22}[a-zA-Z0-9]")
# The service's own words (aztfmod/terraform-provider-azurecaf#78).
BAD_NAME = (
    "Compute name is invalid. It can include letters, digits and dashes. It must start with a letter, end with a "
    "letter or digit, and be between 3 and 24 characters in length"
)
CREATE_SECONDS = 0.2  # a client must see that creating is a long-running operation


class ComputeRoutes:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._creating: dict[str, str] = {}  # cluster -> its operation

    def table(self) -> list[web.RouteDef]:
        one = WORKSPACE + "/computes/{name}"
        return [
            web.get(WORKSPACE + "/computes", self.list_clusters),
            web.get(one, self.get_cluster),
            web.put(one, self.put_cluster),
            web.patch(one, self.patch_cluster),
            web.delete(one, self.delete_cluster),
            web.post(one + "/listNodes", self.list_nodes),
            web.post(one + "/{switch:start|stop}", self.switch_instance),
            web.get(LOCATION + "/workspaceOperationsStatus/{operation}", self.get_operation),
        ]

    async def list_clusters(self, _: web.Request) -> web.Response:
        workspace = self._parts.workspace
        names = [*workspace.clusters, *(instance.name for instance in workspace.instances.all())]
        return web.json_response({"value": [self._body(name) for name in names]})

    async def get_cluster(self, request: web.Request) -> web.Response:
        return web.json_response(self._body(request.match_info["name"]))

    async def put_cluster(self, request: web.Request) -> web.Response:
        """Create (201 and an operation to poll) or update (200, done) a cluster."""
        name = request.match_info["name"]
        if not COMPUTE_NAME.fullmatch(name):
            raise BadRequest(f"{BAD_NAME} ({name!r}).")
        document = await body(request, "properties")
        is_instance = mapping(document, "properties").get("computeType") == KIND
        if (
            name.lower() in self._parts.workspace.clusters
            if is_instance
            else self._parts.workspace.instances.find(name)
        ):
            raise Conflict(f"There is a compute {name} of another type; delete it, or choose another name.")
        if is_instance:
            self._parts.workspace.instances.put(name, document)
            return web.json_response(self._body(name), status=201)
        _, fresh = self._parts.workspace.put_cluster(name, document)
        if not fresh:
            return web.json_response(self._body(name))
        operation = self._parts.operations.begin(asyncio.sleep(CREATE_SECONDS))
        self._creating[name.lower()] = operation
        return web.json_response(self._body(name), status=201, headers=self._poll(operation))

    async def patch_cluster(self, request: web.Request) -> web.Response:
        name, document = request.match_info["name"], await body(request)
        settings = mapping(mapping(document, "properties"), "properties").get("scaleSettings")
        tags = document.get("tags")
        if not isinstance(settings, dict) and tags is None:
            raise BadRequest("A compute's PATCH takes properties.properties.scaleSettings, tags, and nothing else.")
        self._parts.workspace.change_cluster(name, settings if isinstance(settings, dict) else None, tags)
        return web.json_response(self._body(name))

    async def delete_cluster(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        self._parts.workspace.instances.forget(name)
        if name.lower() not in self._parts.workspace.clusters:
            return web.Response(status=204)
        operation = self._parts.operations.begin(self._parts.scheduler.delete_cluster(name))
        return web.Response(status=202, headers=self._poll(operation))

    async def list_nodes(self, request: web.Request) -> web.Response:
        cluster = self._parts.workspace.cluster(request.match_info["name"])
        return web.json_response({"nodes": [responses.node(node) for node in cluster.nodes]})

    async def switch_instance(self, request: web.Request) -> web.Response:
        name, instances = request.match_info["name"], self._parts.workspace.instances
        if instances.find(name) is None and name.lower() in self._parts.workspace.clusters:
            raise BadRequest(
                f"{name} is an AmlCompute, which starts and stops its nodes itself; set its scaleSettings."
            )
        instances.switch(name, request.match_info["switch"] == "start")
        return web.Response(status=202)

    async def get_operation(self, request: web.Request) -> web.Response:
        operation = request.match_info["operation"]
        answer = {"id": request.path, "name": operation, **self._parts.operations.answer(operation)}
        return web.json_response(answer, headers=POLL_HEADER if answer["status"] == "InProgress" else {})

    def _body(self, name: str) -> Json:
        if instance := self._parts.workspace.instances.find(name):
            config = self._parts.config
            return instance.body(config.workspace_id, config.location)
        cluster = self._parts.workspace.cluster(name)
        creating = self._parts.operations.under_way(self._creating.get(name.lower()))
        return self._parts.wire.cluster(cluster, "Creating" if creating else "Succeeded")

    def _poll(self, operation: str) -> dict[str, str]:
        config = self._parts.config
        place = f"/subscriptions/{config.subscription_id}/providers/{PROVIDER}/locations/{config.location}"
        url = f"{self._parts.wire.base}{place}/workspaceOperationsStatus/{operation}?api-version={LATEST}"
        return {"Azure-AsyncOperation": url, "Location": url, **POLL_HEADER}

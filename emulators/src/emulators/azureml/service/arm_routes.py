"""Routes of the workspace and its datastores."""

from __future__ import annotations

import re

from aiohttp import web

from emulators.azureml.kernel import checks
from emulators.azureml.kernel.config import PROVIDER
from emulators.azureml.kernel.errors import BadRequest
from emulators.azureml.kernel.models import Datastore
from emulators.azureml.service.server import WORKSPACE, Parts, properties

# https://learn.microsoft.com/rest/api/storageservices/naming-and-referencing-containers--blobs--and-metadata
CONTAINER_NAME = re.compile(r"\$root|(?=.{3,63}$)[a-z0-9]+(-[a-z0-9]+)*")
DATASTORE_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_-]{0,254}")


class ArmRoutes:
    def __init__(self, parts: Parts, created: str) -> None:
        self._parts = parts
        self._created = created

    def table(self) -> list[web.RouteDef]:
        return [
            web.get(WORKSPACE, self.get_workspace),
            web.get("/subscriptions/{sub}/resourceGroups/{group}", self.get_group),
            web.get(WORKSPACE.rpartition("/")[0], self.list_workspaces),
            web.get(f"/subscriptions/{{sub}}/providers/{PROVIDER}/workspaces", self.list_workspaces),
            web.get("/discovery", self.discovery),
            web.get(WORKSPACE + "/datastores", self.list_datastores),
            web.get(WORKSPACE + "/datastores/{name}", self.get_datastore),
            web.put(WORKSPACE + "/datastores/{name}", self.put_datastore),
            web.delete(WORKSPACE + "/datastores/{name}", self.delete_datastore),
            web.post(WORKSPACE + "/datastores/{name}/listSecrets", self.list_secrets),
        ]

    async def get_workspace(self, _: web.Request) -> web.Response:
        return web.json_response(self._parts.wire.workspace(self._created))

    async def get_group(self, _: web.Request) -> web.Response:
        """Answer with the resource group, as Microsoft.Resources has it."""
        config = self._parts.config
        answer = {
            "id": f"/subscriptions/{config.subscription_id}/resourceGroups/{config.resource_group}",
            "name": config.resource_group,
            "type": "Microsoft.Resources/resourceGroups",
            "location": config.location,
            "properties": {"provisioningState": "Succeeded"},
        }
        return web.json_response(answer)

    async def list_workspaces(self, _: web.Request) -> web.Response:
        """Answer with the list of workspaces, which has one."""
        return web.json_response({"value": [self._parts.wire.workspace(self._created)]})

    async def discovery(self, _: web.Request) -> web.Response:
        """Answer with the addresses of the services beside ARM. This server also serves run history and assets."""
        names = ("api", "history", "experimentation", "catalog", "hyperdrive", "pipelines", "modelmanagement", "studio")
        own = "preflight"  # whether a job can run here; Azure has no such route
        return web.json_response(dict.fromkeys((*names, own), self._parts.wire.base))

    async def list_datastores(self, request: web.Request) -> web.Response:
        default_only = request.query.get("isDefault", "").lower() == "true"
        stores = [d for d in self._parts.workspace.datastores.values() if d.is_default or not default_only]
        return web.json_response({"value": [self._parts.wire.datastore(d, self._created) for d in stores]})

    async def get_datastore(self, request: web.Request) -> web.Response:
        datastore = self._parts.workspace.datastore(request.match_info["name"])
        return web.json_response(self._parts.wire.datastore(datastore, self._created))

    async def put_datastore(self, request: web.Request) -> web.Response:
        wanted, name = await properties(request), request.match_info["name"]
        if wanted.get("datastoreType") != "AzureBlob" or not wanted.get("containerName"):
            raise BadRequest(f"Datastore {name!r}: needs datastoreType AzureBlob and a containerName.")
        if not DATASTORE_NAME.fullmatch(name):
            raise BadRequest(f"Datastore name {name!r:.80}: use letters, digits, '-' and '_', at most 255 of them.")
        container = checks.text(wanted, "containerName")
        if not CONTAINER_NAME.fullmatch(container):
            raise BadRequest(
                f"containerName is {container!r:.80}; it must be 3 to 63 small letters, digits, and single '-' between."
            )
        account = str(wanted.get("accountName") or "").rstrip("#").rpartition("/")[2]
        if account != self._parts.blobs.account:
            raise BadRequest(f"Datastore {name!r}: the account is {self._parts.blobs.account!r}, not {account!r}.")
        datastore = Datastore(
            name,
            container,
            description=checks.optional_text(wanted, "description"),
            tags=checks.texts(wanted, "tags"),
            properties=checks.texts(wanted, "properties"),
        )
        await self._parts.blobs.create_container(datastore.container)
        fresh = self._parts.workspace.put_datastore(datastore)
        return web.json_response(self._parts.wire.datastore(datastore, self._created), status=201 if fresh else 200)

    async def delete_datastore(self, request: web.Request) -> web.Response:
        gone = self._parts.workspace.forget_datastore(request.match_info["name"])
        return web.Response(status=200 if gone else 204)

    async def list_secrets(self, request: web.Request) -> web.Response:
        self._parts.workspace.datastore(request.match_info["name"])
        return web.json_response({"secretsType": "AccountKey", "key": self._parts.blobs.key})

"""Routes of the workspace, its datastores, and its code and environment versions."""

from __future__ import annotations

import hashlib
import uuid

from aiohttp import web

from emulators.azureml import checks
from emulators.azureml.errors import BadRequest, NotFound
from emulators.azureml.models import Datastore
from emulators.azureml.server import WORKSPACE, Parts, body, number, properties

ASSETS = WORKSPACE + "/{kind:codes|environments}/{name}"


class ArmRoutes:
    def __init__(self, parts: Parts, created: str) -> None:
        self._parts = parts
        self._created = created

    def table(self) -> list[web.RouteDef]:
        return [
            web.get(WORKSPACE, self.get_workspace),
            web.get("/discovery", self.discovery),
            web.get(WORKSPACE + "/datastores", self.list_datastores),
            web.get(WORKSPACE + "/datastores/{name}", self.get_datastore),
            web.put(WORKSPACE + "/datastores/{name}", self.put_datastore),
            web.delete(WORKSPACE + "/datastores/{name}", self.delete_datastore),
            web.post(WORKSPACE + "/datastores/{name}/listSecrets", self.list_secrets),
            web.get(ASSETS, self.get_container),
            web.get(ASSETS + "/versions", self.list_versions),
            web.get(ASSETS + "/versions/{version}", self.get_version),
            web.put(ASSETS + "/versions/{version}", self.put_version),
            web.post(WORKSPACE + "/codes/{name}/versions/{version}/startPendingUpload", self.start_upload),
        ]

    async def get_workspace(self, _: web.Request) -> web.Response:
        return web.json_response(self._parts.wire.workspace(self._created))

    async def discovery(self, _: web.Request) -> web.Response:
        """Addresses of the services beside ARM; run history and assets are served here too."""
        names = ("api", "history", "experimentation", "catalog", "hyperdrive", "pipelines", "modelmanagement", "studio")
        return web.json_response(dict.fromkeys(names, self._parts.wire.base))

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
        account = str(wanted.get("accountName") or "").rstrip("#").rpartition("/")[2]
        if account != self._parts.blobs.account:
            raise BadRequest(f"Datastore {name!r}: the account is {self._parts.blobs.account!r}, not {account!r}.")
        datastore = Datastore(
            name,
            checks.text(wanted, "containerName"),
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

    async def get_container(self, request: web.Request) -> web.Response:
        kind, name = request.match_info["kind"], request.match_info["name"]
        versions = self._parts.workspace.versions(kind, name)
        if not versions:
            raise NotFound(f"There is no {name!r} among the workspace's {kind}.")
        return web.json_response(self._parts.wire.asset_container(versions))

    async def list_versions(self, request: web.Request) -> web.Response:
        kind, name = request.match_info["kind"], request.match_info["name"]
        if digest := request.query.get("hash"):
            versions = self._parts.workspace.code_with_hash(digest)
        else:
            versions = self._parts.workspace.versions(kind, name)
        wanted = versions[: number(request, "$top")]
        return web.json_response({"value": [self._parts.wire.asset(asset) for asset in wanted]})

    async def get_version(self, request: web.Request) -> web.Response:
        asset = self._parts.workspace.asset(*_asset_of(request))
        return web.json_response(self._parts.wire.asset(asset))

    async def put_version(self, request: web.Request) -> web.Response:
        asset, fresh = self._parts.workspace.put_asset(*_asset_of(request), await properties(request))
        return web.json_response(self._parts.wire.asset(asset), status=201 if fresh else 200)

    async def start_upload(self, request: web.Request) -> web.Response:
        """Give the client a container of its own to put a code snapshot into; the same one if it asks again."""
        await body(request)
        which = f"{request.match_info['name']}:{request.match_info['version']}"
        container = "code-" + hashlib.sha256(which.encode()).hexdigest()[:32]
        await self._parts.blobs.create_container(container)
        sas = self._parts.blobs.container_sas(container)
        answer = self._parts.wire.pending_upload(str(uuid.uuid4()), sas.partition("?")[0], sas)
        return web.json_response(answer)


def _asset_of(request: web.Request) -> tuple[str, str, str]:
    return request.match_info["kind"], request.match_info["name"], request.match_info["version"]

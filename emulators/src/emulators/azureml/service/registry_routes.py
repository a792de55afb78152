"""Routes for reading registries: through Resource Manager, and at the address that MLClient discovers."""

from __future__ import annotations

from aiohttp import web
from aiohttp.typedefs import Handler

from emulators.azureml.kernel.config import PROVIDER
from emulators.azureml.kernel.models import Json
from emulators.azureml.service.asset_routes import KIND, AssetRoutes
from emulators.azureml.service.server import Parts, body
from emulators.azureml.workspace.registry_files import CONTAINER
from emulators.azureml.workspace.registry_folder import RegistryFolder
from emulators.tokens import TENANT

GROUP = f"/subscriptions/{{sub}}/resourceGroups/{{group}}/providers/{PROVIDER}/registries"
REGISTRY = GROUP + "/{registry}"
FRONT = "/mferp/managementfrontend"  # MLClient's prefix for paths of a registry
DISCOVERY = "/registrymanagement/v1.0/registries/{registry}/discovery"


class RegistryRoutes:
    def __init__(self, parts: Parts, folder: RegistryFolder) -> None:
        self._parts = parts
        self._folder = folder
        self._assets = AssetRoutes(parts)

    def table(self) -> list[web.RouteDef]:
        return [
            web.get(DISCOVERY, self._fresh(self.discover)),
            web.get(GROUP, self._fresh(self.list)),
            web.get(f"/subscriptions/{{sub}}/providers/{PROVIDER}/registries", self._fresh(self.list)),
            web.get(REGISTRY, self._fresh(self.get)),
            *self._reading(REGISTRY, "datareferences"),
            *self._reading(FRONT + REGISTRY, "datarefs"),
        ]

    def _reading(self, base: str, references: str) -> list[web.RouteDef]:
        """Return the routes for reading a registry below this path."""
        one = f"{base}/{KIND}/{{name}}"
        read = {
            f"{base}/{KIND}": self._assets.list_names,
            one: self._assets.get_name,
            f"{one}/versions": self._assets.list_versions,
            f"{one}/versions/{{version}}": self._assets.get_version,
        }
        refer = web.post(f"{base}/{references}/{{name}}/versions/{{version}}", self._fresh(self.reference))
        return [*(web.get(path, self._fresh(handler)) for path, handler in read.items()), refer]

    def _fresh(self, handler: Handler) -> Handler:
        """Wrap a handler so that it first reads changes in the registries' files."""

        async def answer(request: web.Request) -> web.StreamResponse:
            await self._folder.refresh()
            return await handler(request)

        return answer

    async def discover(self, request: web.Request) -> web.Response:
        """Answer with the endpoint of a registry, which is always this server."""
        registry, config = self._parts.workspace.registries.get(request.match_info["registry"]), self._parts.config
        answer = {
            "registryName": registry.name,
            "tenantId": TENANT,
            "primaryRegion": config.location,
            "regions": [config.location],
            "registryFqdns": {config.location: {"uri": self._parts.wire.base}},
            "subscriptionId": config.subscription_id,
            "resourceGroup": config.resource_group,
            "workspaceName": "",
            "primaryRegionResourceProviderUri": f"{self._parts.wire.base}/",
        }
        return web.json_response(answer)

    async def list(self, _: web.Request) -> web.Response:
        return web.json_response({"value": [self._registry(name) for name in self._parts.workspace.registries.names()]})

    async def get(self, request: web.Request) -> web.Response:
        registry = self._parts.workspace.registries.get(request.match_info["registry"])
        return web.json_response(self._registry(registry.name))

    def _registry(self, name: str) -> Json:
        return self._parts.wire.registry(name, self._parts.workspace.created)

    async def reference(self, request: web.Request) -> web.Response:
        """Answer with a URL for reading the files of a version for a day."""
        self._parts.workspace.registries.get(request.match_info["registry"])
        uri = str((await body(request, "assetId", "blobUri"))["blobUri"])
        sas = self._parts.blobs.container_sas(CONTAINER, write=False)
        return web.json_response(self._parts.wire.blob_reference(uri, sas))

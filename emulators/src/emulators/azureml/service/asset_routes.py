"""Routes of assets: data, models, environments, components and code, their versions, and where their files are
uploaded."""

from __future__ import annotations

import hashlib
import uuid
from urllib.parse import urlencode

from aiohttp import web

from emulators.azureml.bodies.asset_body import KINDS
from emulators.azureml.kernel.checks import choice
from emulators.azureml.kernel.models import Asset, Json, Shelf
from emulators.azureml.kernel.sources import AssetRef
from emulators.azureml.service.server import WORKSPACE, Parts, body, number, properties
from emulators.azureml.workspace.assets import LATEST, Assets

PAGE = 100
VIEWS = {"ActiveOnly": False, "ArchivedOnly": True, "All": None}  # listViewType: archived
KIND = f"{{kind:(?i:{'|'.join(KINDS)})}}"
ASSETS = f"{WORKSPACE}/{KIND}"
OLDEST_FIRST = ("createdtime asc", "createdtime")


class AssetRoutes:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._assets = parts.workspace.assets

    def table(self) -> list[web.RouteDef]:
        one, version = ASSETS + "/{name}", ASSETS + "/{name}/versions/{version}"
        return [
            web.get(ASSETS, self.list_names),
            web.get(one, self.get_name),
            web.put(one, self.put_name),
            web.delete(one, self.delete_name),
            web.get(one + "/versions", self.list_versions),
            web.get(version, self.get_version),
            web.put(version, self.put_version),
            web.delete(version, self.delete_version),
            web.post(version + "/startPendingUpload", self.start_upload),
        ]

    async def list_names(self, request: web.Request) -> web.Response:
        shelves = self._library(request).shelves(request.match_info["kind"].lower(), _view(request))
        return self._page(request, [self._shelf(request, shelf) for shelf in shelves])

    async def get_name(self, request: web.Request) -> web.Response:
        return self._answer_name(request)

    async def put_name(self, request: web.Request) -> web.Response:
        _, fresh = self._assets.put_shelf(*_name_of(request), await properties(request))
        return self._answer_name(request, 201 if fresh else 200)

    async def delete_name(self, request: web.Request) -> web.Response:
        return web.Response(status=200 if self._assets.delete_shelf(*_name_of(request)) else 204)

    async def list_versions(self, request: web.Request) -> web.Response:
        """Answer with the versions, newest first, as Azure does even without `$orderBy`. With `hash`, list only
        code with this content."""
        if digest := request.query.get("hash"):
            found = self._library(request).with_hash(digest)
        else:
            found = self._library(request).versions(*_name_of(request), _view(request)) or self._curated(request)
        if request.query.get("$orderBy", "").lower().strip() in OLDEST_FIRST:
            found.reverse()
        return self._page(request, [self._parts.wire.asset(asset, _registry(request)) for asset in found])

    def _curated(self, request: web.Request) -> list[Asset]:
        """Return the workspace's single version of a Microsoft environment, which is not stored in the workspace.
        Empty for other environments."""
        wanted = AssetRef(*_name_of(request), LATEST, _registry(request))
        return [self._parts.workspace.find(wanted)] if self._parts.workspace.is_curated(wanted) else []

    async def get_version(self, request: web.Request) -> web.Response:
        wanted = AssetRef(*_version_of(request), _registry(request))
        return web.json_response(self._parts.wire.asset(self._parts.workspace.find(wanted), wanted.registry))

    async def put_version(self, request: web.Request) -> web.Response:
        asset, fresh = self._assets.put(*_version_of(request), await properties(request))
        return web.json_response(self._parts.wire.asset(asset), status=201 if fresh else 200)

    async def delete_version(self, request: web.Request) -> web.Response:
        return web.Response(status=200 if self._assets.delete(*_version_of(request)) else 204)

    async def start_upload(self, request: web.Request) -> web.Response:
        """Answer with a container for the files of an asset's version. A repeated request gets the same container."""
        await body(request)
        kind, name, version = _version_of(request)
        # Code has no kind in its container's name, so that snapshots of an older state are found again.
        which = f"{name}:{version}" if kind == "codes" else f"{kind}:{name}:{version}"
        container = f"{'code' if kind == 'codes' else 'asset'}-{hashlib.sha256(which.encode()).hexdigest()[:32]}"
        await self._parts.blobs.create_container(container)
        sas = self._parts.blobs.container_sas(container)
        return web.json_response(self._parts.wire.pending_upload(str(uuid.uuid4()), sas.partition("?")[0], sas))

    def _answer_name(self, request: web.Request, status: int = 200) -> web.Response:
        shelf = self._library(request).shelf(*_name_of(request))
        return web.json_response(self._shelf(request, shelf), status=status)

    def _shelf(self, request: web.Request, shelf: Shelf) -> Json:
        """Return the JSON of an asset's name with its newest version and the next version's number. The newest
        version is an archived version only if all versions are archived."""
        found = self._library(request)
        newest = next((a for view in (False, None) for a in found.versions(shelf.kind, shelf.name, view)), None)
        following = found.next_version(shelf.kind, shelf.name)
        return self._parts.wire.shelf(shelf, newest, following, _registry(request))

    def _library(self, request: web.Request) -> Assets:
        """Return the assets of the workspace, or of the registry in the address."""
        registry = _registry(request)
        return self._parts.workspace.registries.get(registry).assets if registry else self._assets

    def _page(self, request: web.Request, found: list[Json]) -> web.Response:
        """Answer with a page of a list. `$skip` is the number of entries on the previous pages."""
        skip, top = number(request, "$skip") or 0, number(request, "$top")
        left = found[skip:] if top is None else found[skip : skip + top]
        answer: Json = {"value": left[:PAGE]}
        if len(left) > PAGE:
            rest = {"$skip": str(skip + PAGE), **({} if top is None else {"$top": str(top - PAGE)})}
            answer["nextLink"] = f"{self._parts.wire.base}{request.path}?{urlencode({**request.query, **rest})}"
        return web.json_response(answer)


def _view(request: web.Request) -> bool | None:
    """Return the listViewType. For registries azure-ai-ml sends the Python name, ListViewType.ACTIVE_ONLY, as the
    value."""
    sent = request.query.get("listViewType", "ActiveOnly")
    if sent.startswith("ListViewType."):
        sent = "".join(word.capitalize() for word in sent.partition(".")[2].split("_"))
    return VIEWS[choice(sent, "listViewType", VIEWS)]


def _registry(request: web.Request) -> str:
    """Return the registry in the address, or '' for the workspace."""
    return request.match_info.get("registry", "")


def _name_of(request: web.Request) -> tuple[str, str]:
    return request.match_info["kind"].lower(), request.match_info["name"]


def _version_of(request: web.Request) -> tuple[str, str, str]:
    return (*_name_of(request), request.match_info["version"])

"""Files of MLflow's runs and models, which MLflow's clients upload and download through the tracking server, stored as
blobs.

A path is a blob's name in the container of the runs' files, so a job's logs, its `./outputs` and the files that it
logged to MLflow are in one folder. `datastores/NAME/PATH` reads a datastore, where MLClient's models are.
"""

from __future__ import annotations

import re

from aiohttp import web

from emulators.azureml.kernel.config import ARTIFACT_CONTAINER
from emulators.azureml.kernel.errors import BadRequest, NotFound
from emulators.azureml.kernel.models import Json
from emulators.azureml.storage.blobs import Blobs, Place
from emulators.azureml.workspace.workspace import Workspace

RUNS, MLFLOW, DATASTORES = "ExperimentRun", "mlflow", "datastores"
RUN_ID = re.compile(r"[\w-]{1,255}")
RUN_FILES = f"mlflow-artifacts:/{RUNS}/dcid.{{run}}"
ROOT = f"mlflow-artifacts:/{MLFLOW}"
PIECE = 4 * 1024 * 1024


class Artifacts:
    def __init__(self, workspace: Workspace, blobs: Blobs) -> None:
        self._workspace = workspace
        self._blobs = blobs

    async def put(self, request: web.Request) -> web.Response:
        place = self._writable(request.match_info["path"])
        await self._blobs.write(place, request.content.iter_chunked(PIECE), request.content_length)
        return web.json_response({})

    async def get(self, request: web.Request) -> web.StreamResponse:
        place = self._place(request.match_info["path"])
        if not await self._blobs.exists(place):
            raise NotFound(f"There is no artifact {request.match_info['path']!r:.200}.", "RESOURCE_DOES_NOT_EXIST")
        response = web.StreamResponse(headers={"Content-Type": "application/octet-stream"})
        await response.prepare(request)
        async for piece in self._blobs.read(place):
            await response.write(piece)
        return response

    async def delete(self, request: web.Request) -> web.Response:
        place = self._writable(request.match_info["path"])
        for blob in [place.path, *[name async for name, _ in self._blobs.below(place)]]:
            await self._blobs.delete(Place(place.container, blob))
        return web.json_response({})

    async def list_folder(self, request: web.Request) -> web.Response:
        """`?path=`: answer with the files and folders directly in a folder, sorted by name."""
        return web.json_response({"files": await self._files(self._place(request.query.get("path", "")), "")})

    async def list_run(self, request: web.Request) -> web.Response:
        """`?run_id=&path=`: answer with a run's files and folders, by their paths below the run."""
        run, path = request.query.get("run_id", ""), request.query.get("path", "").strip("/")
        if not RUN_ID.fullmatch(run):
            raise BadRequest(f"run_id {run!r:.80} is not the id of a run.", "INVALID_PARAMETER_VALUE")
        root = RUN_FILES.format(run=run)
        place = self._place(f"{RUNS}/dcid.{run}/{path}")
        return web.json_response({"root_uri": root, "files": await self._files(place, f"{path}/" if path else "")})

    async def _files(self, place: Place, above: str) -> list[Json]:
        found: dict[str, Json] = {}
        async for name, size in self._blobs.below(place):
            first, _, rest = name.removeprefix(f"{place.path.rstrip('/')}/" if place.path else "").partition("/")
            is_file = {"path": above + first, "is_dir": False, "file_size": size}
            found.setdefault(first, {"path": above + first, "is_dir": True} if rest else is_file)
        return [found[name] for name in sorted(found)]

    def _writable(self, path: str) -> Place:
        place = self._place(path)
        if not path.startswith((f"{RUNS}/", f"{MLFLOW}/")):
            raise BadRequest(f"MLflow writes below {RUNS}/ and {MLFLOW}/, not to {path!r:.200}.")
        return place

    def _place(self, path: str) -> Place:
        parts = path.strip("/").split("/")
        if {"", ".", ".."} & set(parts) or parts[0] not in (RUNS, MLFLOW, DATASTORES):
            raise BadRequest(f"{path!r:.200} is not a place for artifacts here.", "INVALID_PARAMETER_VALUE")
        if parts[0] != DATASTORES:
            return Place(ARTIFACT_CONTAINER, "/".join(parts))
        store = self._workspace.datastore(parts[1] if len(parts) > 1 else "")
        return Place(store.container, "/".join(parts[2:]))

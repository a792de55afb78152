"""The routes of MLflow: files are stored as blobs, and other requests are forwarded to MLflow's own server."""

from __future__ import annotations

import asyncio
import re
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Handler

from emulators.azureml.kernel.errors import ArmError, DataError, NotFound
from emulators.azureml.kernel.identity import claim
from emulators.azureml.service import arm
from emulators.azureml.service.server import WORKSPACE, Parts
from emulators.azureml.tracking.artifacts import Artifacts
from emulators.azureml.tracking.run_limits import RunLimits
from emulators.azureml.tracking.tracking import Tracking
from emulators.serving import read_body

MLFLOW = "/mlflow/{version}" + WORKSPACE
FILES = MLFLOW + "/api/{api}/mlflow-artifacts/artifacts"
CLIENT = "mlflow"  # in MLflow's User-Agent; other clients do not start the server
# azureml-mlflow uses this version, and gets the files' full address because it can't read MLflow's own scheme.
OF_AZUREML = "v2.0"
ARTIFACTS = re.compile(rb'("(?:artifact_uri|artifact_location|source)":\s*")mlflow-artifacts:/')
NOTICE_SECONDS = 20.0  # after which a job's log shows that it waits
RUN_KEYS = ("run_id", "run_uuid", "source_run_id")


class TrackingRoutes:
    def __init__(self, parts: Parts, tracking: Tracking) -> None:
        self._tracking = tracking
        self._limits = RunLimits(tracking.ask)
        self._note = parts.scheduler.note
        self._base = parts.wire.base
        self._artifacts = Artifacts(parts.workspace, parts.blobs)

    def table(self) -> list[web.RouteDef]:
        files = self._artifacts
        return [
            web.get(FILES, _as_mlflow(files.list_folder)),
            web.get(FILES + "/{path:.+}", _as_mlflow(files.get)),
            web.put(FILES + "/{path:.+}", _as_mlflow(files.put)),
            web.delete(FILES + "/{path:.+}", _as_mlflow(files.delete)),
            web.get(MLFLOW + "/api/{api}/mlflow/artifacts/list", _as_mlflow(files.list_run)),
            web.route("*", MLFLOW + "/api/{api}/mlflow/logged-models{rest:.*}", self.not_in_azure),
            web.route("*", MLFLOW + "/{rest:.*}", _as_mlflow(self.attended)),
        ]

    async def not_in_azure(self, _: web.Request) -> web.Response:
        """Refuse MLflow's logged models, which `log_model` of newer clients requests: Azure ML answers 404 without
        a body.

        https://github.com/Azure/azure-sdk-for-python/issues/44896
        """
        return web.Response(status=404)

    async def attended(self, request: web.Request) -> web.StreamResponse:
        """Forward a request as `forward` does. If a job has to wait, its log has the reason."""
        run = claim(request.headers.get("Authorization", ""), "run")
        words = "MLflow's tracking server has not answered for {:g} s; this job waits for it. {}"
        late = words.format(NOTICE_SECONDS, "It may be starting: its log is tracking.log beside the state.")
        notice = asyncio.get_running_loop().call_later(NOTICE_SECONDS, self._note, run, late)
        try:
            return await self.forward(request)
        except ArmError as error:
            if error.status >= 500:
                self._note(run, f"MLflow can't be reached, so this is not logged: {error.message}")
            raise
        finally:
            notice.cancel()

    async def forward(self, request: web.Request) -> web.Response:
        """Copy the objects that the request may need to MLflow, forward the request, and copy created objects back."""
        rest, body = request.match_info["rest"], await read_body(request)
        if request.method == "GET" and not self._tracking.used and CLIENT not in request.headers.get("User-Agent", ""):
            raise NotFound("Nothing was ever logged to MLflow in this workspace.", "RESOURCE_DOES_NOT_EXIST")
        files = self._files(request, rest)
        body = body.replace(files, b"mlflow-artifacts:/") if files else body
        given = arm.readable(body) if body else None
        said = {**request.query, **(given if isinstance(given, dict) else {})}
        await self._copy_named(rest, said)
        if request.method == "POST":
            await self._limits.check(rest, said)
        status, answer, kind = await self._tracking.ask(request.method, f"/{rest}", request.query_string, body)
        if status == 200 and rest.endswith("model-versions/create"):
            await self._tracking.registered(answer)
        if files:
            answer = ARTIFACTS.sub(lambda found: found[1] + files, answer)
        return web.Response(status=status, body=answer, content_type=kind)

    def _files(self, request: web.Request, rest: str) -> bytes:
        """Return the URL of the files for clients without MLflow's own scheme, and nothing for other clients."""
        if request.match_info["version"] != OF_AZUREML:
            return b""
        return f"{self._base}{request.path.removesuffix(rest)}api/2.0/mlflow-artifacts/artifacts/".encode()

    async def _copy_named(self, rest: str, given: dict[str, Any]) -> None:
        if rest.endswith("runs/search") or "/experiments/" in rest:
            await self._tracking.copy_jobs()
        for key in RUN_KEYS:
            if isinstance(given.get(key), str):
                await self._tracking.copy_job(given[key])
        if "/registered-models/" in rest or "/model-versions/" in rest:
            await self._tracking.copy_models()


def _as_mlflow(handler: Handler) -> Handler:
    """Wrap a handler so that its errors have MLflow's form."""

    async def answer(request: web.Request) -> web.StreamResponse:
        try:
            return await handler(request)
        except ArmError as error:
            code = (
                error.code
                if error.code.isupper()
                else "RESOURCE_DOES_NOT_EXIST"
                if error.status == 404
                else "BAD_REQUEST"
            )
            return web.json_response({"error_code": code, "message": error.message}, status=error.status)
        except DataError as error:
            return web.json_response({"error_code": "INTERNAL_ERROR", "message": str(error)}, status=502)

    return answer

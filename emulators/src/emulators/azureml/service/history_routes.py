"""Routes of the run history and asset services, from which the SDK reads the logs, outputs and children of jobs."""

from __future__ import annotations

import re

from aiohttp import web

from emulators.azureml.kernel import checks
from emulators.azureml.kernel.errors import BadRequest, NotFound
from emulators.azureml.kernel.models import Job, Json
from emulators.azureml.kernel.service_limits import check_run
from emulators.azureml.running.context import run_place
from emulators.azureml.service.server import WORKSPACE, Parts, body, number
from emulators.azureml.workspace.families import places_of
from emulators.azureml.workspace.jobs import Listing

PAGE = 100
HISTORY = "/history/v1.0" + WORKSPACE
DATA = "/data/v1.0" + WORKSPACE
OUTPUT_ASSET = re.compile(r"(?P<job>[\w-]{1,255})_output_data_(?P<output>[\w.-]{1,255})/versions/1")


class HistoryRoutes:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def table(self) -> list[web.RouteDef]:
        return [
            web.get(HISTORY + "/runs/{name}", self.get_run),
            web.get(HISTORY + "/runs/{name}/children", self.children),
            web.get(HISTORY + "/runs/{name}/details", self.run_details),
            web.get(HISTORY + "/runs/{name}/serviceinstances/{node}", self.run_services),
            web.get(HISTORY + "/experiments/{experiment}/runs/{name}/details", self.run_details),
            web.patch(HISTORY + "/experiments/{experiment}/runs/{name}", self.patch_run),
            web.patch(HISTORY + "/experimentids/{experiment}/runs/{name}", self.patch_run),  # mldesigner writes values
            web.post(HISTORY + "/rundata", self.run_data),
            web.post(DATA + "/dataversion/batchGetResolvedUris", self.resolve_uris),
        ]

    async def get_run(self, request: web.Request) -> web.Response:
        return web.json_response(self._parts.wire.run(self._job(request)))

    async def children(self, request: web.Request) -> web.Response:
        """Answer with the steps of a pipeline or the trials of a sweep, newest first."""
        job, top = self._job(request), number(request, "$top") or PAGE
        page = Listing(archived=None, before=number(request, "$skip"), of=job.name)
        found = self._parts.workspace.jobs.page(page, min(top, PAGE) + 1)
        shown = found[: min(top, PAGE)]
        answer: Json = {"value": [self._parts.wire.run(child) for child in shown]}
        if len(found) > len(shown) and len(shown) < top:
            answer["nextLink"] = f"{self._parts.wire.base}{request.path}?$skip={shown[-1].number}"
        return web.json_response(answer)

    async def run_details(self, request: web.Request) -> web.Response:
        job = self._job(request)
        urls = {name: self._parts.blobs.blob_sas(run_place(job.name, name)) for name in job.logs}
        return web.json_response(self._parts.wire.run_details(job, urls))

    async def run_services(self, request: web.Request) -> web.Response:
        """Answer with a job's services on a node, for example a notebook. Jobs here have no services."""
        self._job(request)
        return web.json_response({"instances": {}})

    async def patch_run(self, request: web.Request) -> web.Response:
        """Change a run's names, tags or visibility, as `jobs.archive` does. Tags and properties are merged."""
        job, changes = self._job(request), await body(request)
        merged = {key: {**job.properties[key], **checks.texts(changes, key)} for key in ("tags", "properties")}
        plain = {key: checks.optional_text(changes, key) for key in ("displayName", "description")}
        check_run({**plain, **merged})
        self._parts.workspace.edit(job.name, {**plain, **merged, "isArchived": changes.get("hidden")})
        return web.json_response({"runId": job.name, "status": job.status.value, **merged})

    async def run_data(self, request: web.Request) -> web.Response:
        job = self._parts.workspace.job(checks.text(await body(request), "runId"))
        return web.json_response(self._parts.wire.run_data(job, places_of(job)))

    async def resolve_uris(self, request: web.Request) -> web.Response:
        """Answer with the URIs of data assets, which here are always outputs of jobs."""
        asked = (await body(request, "values"))["values"]
        if not isinstance(asked, list) or not all(isinstance(asset, str) for asset in asked):
            raise BadRequest("'values' must be a list of the ids of data assets.")
        return web.json_response({"values": {asset: self._resolved(asset) for asset in asked}})

    def _resolved(self, asset: str) -> Json:
        if not (match := OUTPUT_ASSET.fullmatch(asset.rpartition("/data/azureml_")[2])):
            raise NotFound(
                f"There is no data asset {asset!r:.300}; only the named outputs of jobs are data assets here."
            )
        job = self._parts.workspace.job(match["job"])
        if (place := places_of(job).get(match["output"])) is None:
            raise NotFound(f"Job {job.name} has no output {match['output']!r}.")
        config = self._parts.config
        scope = f"subscriptions/{config.subscription_id}/resourcegroups/{config.resource_group}"
        prefix = f"azureml://{scope}/workspaces/{config.workspace}/"
        return {"uri": place["uri"].replace("azureml://", prefix, 1), "type": place["type"]}

    def _job(self, request: web.Request) -> Job:
        return self._parts.workspace.job(request.match_info["name"])

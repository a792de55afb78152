"""Routes of jobs."""

from __future__ import annotations

from urllib.parse import urlencode

from aiohttp import web

from emulators.azureml.kernel import checks
from emulators.azureml.kernel.config import PROVIDER
from emulators.azureml.kernel.errors import BadRequest
from emulators.azureml.kernel.models import TERMINAL, Job, Json
from emulators.azureml.service.arm import LATEST
from emulators.azureml.service.operations import POLL_HEADER
from emulators.azureml.service.preflight import described
from emulators.azureml.service.server import LOCATION, WORKSPACE, Parts, body, number, properties
from emulators.azureml.workspace.jobs import PROPERTY, TAG, Label, Listing
from emulators.azureml.workspace.steps import naming

PAGE = 50
MOST_LABELS = 100  # SQLite would take some hundred
PREFLIGHT = "/preflight/v1.0" + WORKSPACE
VIEWS = {"ActiveOnly": False, "ArchivedOnly": True, "All": None}  # listViewType: archived


class JobRoutes:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def table(self) -> list[web.RouteDef]:
        return [
            web.get(WORKSPACE + "/jobs", self.list_jobs),
            web.get(WORKSPACE + "/jobs/{name}", self.get_job),
            web.put(WORKSPACE + "/jobs/{name}", self.put_job),
            web.delete(WORKSPACE + "/jobs/{name}", self.delete_job),
            web.post(WORKSPACE + "/jobs/{name}/cancel", self.cancel_job),
            web.get(LOCATION + "/mfeOperationResults/{name}", self.cancel_result),
            web.post(PREFLIGHT + "/jobs", self.check_job),
        ]

    async def list_jobs(self, request: web.Request) -> web.Response:
        """Answer with jobs, newest first. The link to the next page contains the last listed job, so new jobs do
        not shift the pages."""
        jobs = self._parts.workspace.jobs.page(_listing(request), PAGE + 1)
        answer: Json = {"value": [self._parts.wire.job(job) for job in jobs[:PAGE]]}
        if len(jobs) > PAGE:
            query = urlencode({**request.query, "$skip": str(jobs[PAGE - 1].number)})
            answer["nextLink"] = f"{self._parts.wire.base}{request.path}?{query}"
        return web.json_response(answer)

    async def get_job(self, request: web.Request) -> web.Response:
        return web.json_response(self._parts.wire.job(self._job(request)))

    async def put_job(self, request: web.Request) -> web.Response:
        name, wanted, workspace = request.match_info["name"], await properties(request), self._parts.workspace
        if workspace.jobs.get(name) is None:
            await self._parts.needs.refresh(wanted)
            for what, command in workspace.commands(name, wanted):
                simulated = self._parts.scheduler.simulation.has(command.cluster)
                with naming(what):
                    await self._parts.needs.check(command, simulated=simulated)
        job, fresh = workspace.submit(name, wanted)
        return web.json_response(self._parts.wire.job(job), status=201 if fresh else 200)

    async def check_job(self, request: web.Request) -> web.Response:
        """Check whether a job in Azure ML's YAML schema can run here. Answers with the reasons if it can't.

        Azure has no such operation, because it builds any environment.
        """
        job = checks.mapping(await body(request, "job"), "job")
        try:
            await self._parts.needs.refresh(job)
            await self._parts.needs.check_wanted(wanted := described(job))
            await self._parts.needs.check_stored(wanted)
        except BadRequest as error:
            return web.json_response({"refusals": [error.message]})
        return web.json_response({"refusals": []})

    async def delete_job(self, request: web.Request) -> web.Response:
        """Delete a job. Answers 202 with the URL of an operation that has already ended, or 204 for a missing job."""
        name = request.match_info["name"]
        if not self._parts.workspace.delete_job(name):
            return web.Response(status=204)
        headers = {"Location": self._result(name), "x-ms-async-operation-timeout": "PT1M", **POLL_HEADER}
        return web.Response(status=202, headers=headers)

    async def cancel_job(self, request: web.Request) -> web.Response:
        job = self._job(request)
        if not self._parts.scheduler.cancel(job.name):
            return web.Response(status=200)
        return web.Response(status=202, headers=self._cancel_poll(job))

    async def cancel_result(self, request: web.Request) -> web.Response:
        """Answer 200 once the job has ended or is deleted."""
        job = self._parts.workspace.jobs.get(request.match_info["name"].removeprefix("jc:"))
        if job is None or job.status in TERMINAL:
            return web.Response(status=200)
        return web.Response(status=202, headers=self._cancel_poll(job))

    def _job(self, request: web.Request) -> Job:
        return self._parts.workspace.job(request.match_info["name"])

    def _cancel_poll(self, job: Job) -> dict[str, str]:
        return {"Location": self._result(job.name), **POLL_HEADER}

    def _result(self, name: str) -> str:
        config = self._parts.config
        place = f"/subscriptions/{config.subscription_id}/providers/{PROVIDER}/locations/{config.location}"
        # Azure's own address has a version too, as every address of Resource Manager's.
        return f"{self._parts.wire.base}{place}/mfeOperationResults/jc:{name}?api-version={LATEST}"


def _listing(request: web.Request) -> Listing:
    """Return the filter of a listing: listViewType, `tag` as NAME or NAME=VALUE, and `properties` as such entries
    separated by commas."""
    view = request.query.get("listViewType", "ActiveOnly")
    if view not in VIEWS:
        raise BadRequest(f"listViewType {view!r}; choose ActiveOnly, ArchivedOnly or All.")
    tags = [_label(TAG, text) for text in [request.query.get("tag", "")] if text]
    wanted = [_label(PROPERTY, text) for text in request.query.get("properties", "").split(",") if text]
    if len(wanted) > MOST_LABELS:
        raise BadRequest(f"properties names {len(wanted)}; at most {MOST_LABELS} can be asked for at once.")
    kind = request.query.get("jobType")
    return Listing(VIEWS[view], (*wanted, *tags), number(request, "$skip"), job_type=kind)


def _label(kind: str, text: str) -> Label:
    name, has_value, value = text.partition("=")
    return Label(kind, name.strip(), value.strip() if has_value else None)

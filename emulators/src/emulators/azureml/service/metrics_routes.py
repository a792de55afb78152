"""Azure Monitor's routes for the workspace: metrics and their definitions."""

from __future__ import annotations

import datetime as dt

from aiohttp import web

from emulators.azureml.kernel.errors import BadRequest
from emulators.azureml.kernel.models import Json
from emulators.azureml.metrics import query
from emulators.azureml.metrics.definitions import DEFINITIONS, Definition
from emulators.azureml.metrics.sampler import Sampler
from emulators.azureml.service.server import WORKSPACE, Parts

INSIGHTS = f"{WORKSPACE}/providers/Microsoft.Insights"


class MetricsRoutes:
    def __init__(self, parts: Parts, sampler: Sampler) -> None:
        self._config, self._sampler = parts.config, sampler

    def table(self) -> list[web.RouteDef]:
        return [
            web.get(f"{INSIGHTS}/metrics", self.list_metrics),
            web.get(f"{INSIGHTS}/metricDefinitions", self.list_definitions),
        ]

    async def list_metrics(self, request: web.Request) -> web.Response:
        """Answer with the values of metrics. The service's errors have code and message without a surrounding
        `error`."""
        try:
            asked = query.parse(dict(request.query), dt.datetime.now(dt.UTC))
        except BadRequest as error:
            return web.json_response({"code": "BadRequest", "message": error.message}, status=400)
        samples = self._sampler.samples.of(asked)
        answer = query.answer(asked, samples, self._config.workspace_id, self._config.location)
        return web.json_response(answer)

    async def list_definitions(self, _: web.Request) -> web.Response:
        return web.json_response({"value": [self._definition(each) for each in DEFINITIONS.values()]})

    def _definition(self, metric: Definition) -> Json:
        place = f"{self._config.workspace_id}/providers/microsoft.insights/metricdefinitions"
        return {
            "id": f"{place}/{metric.name}",
            "resourceId": self._config.workspace_id,
            "namespace": "Microsoft.MachineLearningServices/workspaces",
            "name": {"value": metric.name, "localizedValue": metric.name},
            "displayDescription": metric.words,
            "isDimensionRequired": False,
            "unit": "Count",
            "primaryAggregationType": "Average",
            "supportedAggregationTypes": ["Average", "Maximum", "Minimum", "Total"],
            "metricAvailabilities": [{"timeGrain": grain, "retention": "P93D"} for grain in query.GRAINS],
            "dimensions": [{"value": name, "localizedValue": name} for name in metric.dimensions],
        }

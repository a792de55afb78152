"""Views of runs over HTTP: lists, logs, metrics, files."""

from __future__ import annotations

from typing import Annotated

from shared.api import queries, rows
from shared.api.log_ranges import log_answer, wanted_range
from shared.api.records import RunAnswer
from shared.api.requests import (
    ArtifactsQuery,
    CompareQuery,
    FindQuery,
    LogQuery,
    MetricsQuery,
    RunListQuery,
)
from shared.api.run_answers import Artifacts, Compared, RunPageAnswer, Series
from shared.clusters.ports import ClusterPorts
from shared.drops.find_name import FoundName
from shared.kernel.encode import Json
from shared.kernel.reply import Reply
from shared.models.ports import ModelPorts
from shared.ports import AllPorts
from shared.runs.answers import FileAddress, FilePath, FileQuery, file_address
from shared.runs.intake.request import RunName
from shared.runs.ports import RunPorts
from shared.runs.results import artifacts
from shared.runs.views import logs, metrics


def list_runs(ports: ClusterPorts, query: RunListQuery) -> Annotated[Json, RunPageAnswer]:
    return queries.runs(ports, query)


def list_rows(ports: RunPorts, query: rows.RowsQuery) -> Annotated[Json, rows.Rows]:
    return rows.rows(ports.runs, ports.clock, query)


def get_run(ports: ClusterPorts, run: RunName) -> Annotated[Json, RunAnswer]:
    return queries.run(ports, run, viewed=True)


def find(ports: ModelPorts, query: FindQuery) -> Annotated[Json, FoundName]:
    return queries.find(ports, query.name)


def compare(ports: AllPorts, query: CompareQuery) -> Annotated[Json, Compared]:
    return queries.compared(ports, query.runs)


async def get_logs(
    ports: RunPorts, run: RunName, query: LogQuery, range_header: str | None
) -> Annotated[Reply, {200: None, 206: None}]:
    """Return a log's bytes from an offset, after waiting for more if asked, or a range of the log."""
    if byte_range := wanted_range(range_header):
        return log_answer(await logs.ranged(ports, run, query.rank, byte_range), ranged=True)
    return log_answer(await logs.follow(ports, run, query.rank, query.offset, query.wait))


def get_metrics(ports: RunPorts, run: RunName, query: MetricsQuery) -> Annotated[Json, Series]:
    return {"series": metrics.series(ports, run, query.name or None)}


def list_artifacts(ports: RunPorts, run: RunName, query: ArtifactsQuery) -> Annotated[Json, Artifacts]:
    return artifacts.artifacts(ports, run, query.pictures)


def read_artifact(
    ports: RunPorts, run: RunName, path: FilePath, query: FileQuery
) -> Annotated[Reply, {200: FileAddress, 302: None}]:
    return file_address(artifacts.address(ports, run, path), query)

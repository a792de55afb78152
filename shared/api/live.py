"""One answer for followers of a run: the run's record, and the points and the log since the last request.

The follower sends back `metrics.next` and `log.next_offset` of the last answer, and so reads nothing twice and misses
nothing. Answers without news are equal, so a conditional request (If-None-Match) gets 304.
"""

from __future__ import annotations

from math import inf
from typing import Annotated

from msgspec import UNSET

from shared.api import queries
from shared.api.requests import CurvesQuery, LiveQuery
from shared.api.run_answers import Curves, Live
from shared.clusters.ports import ClusterPorts
from shared.jobs.ports import WorkspacePorts
from shared.kernel.encode import Json
from shared.kernel.errors import Impossible
from shared.kernel.memory import Topic
from shared.runs.intake.request import RunName
from shared.runs.model import Run
from shared.runs.views import logs, metrics
from shared.runs.views.metrics import Cursor, Series

LOG_BYTES = 256 * 1024  # of the log per answer; the log's own operation returns ranges
MOST_RUNS = 50  # per answer of curves
SKETCH = 100  # points; curves with at most this many are cached
SKETCHES = Topic[Series]("sketches of curves", most=1000)  # of some 10 kB each


def get_live(ports: ClusterPorts, run: RunName, query: LiveQuery) -> Annotated[Json, Live]:
    """Return the run, and the points and log bytes after `query.after` and `query.offset`. Raises NotFound."""
    record = ports.runs.get(run).value
    cursor = Cursor.of(query.after)
    series = metrics.since(ports, record, cursor)
    log = None
    if query.offset is not UNSET:
        chunk = logs.read(ports, run, query.rank, query.offset, LOG_BYTES)
        log = {
            "text": chunk.data.decode("utf-8", "replace"),
            "offset": chunk.offset,
            "next_offset": chunk.next_offset,
            "size": chunk.size,
            "complete": chunk.complete,
            "ranks": chunk.ranks,
        }
    return {
        "run": queries.shown_run(ports, queries.as_viewed(ports, record)),
        "metrics": {"series": series, "next": str(cursor)},
        "log": log,
    }


def get_curves(ports: ClusterPorts, query: CurvesQuery) -> Annotated[Json, Curves]:
    """Return the curves of several runs, with at most `query.points` points each. Raises NotFound with the run's
    name.
    """
    names = list(dict.fromkeys(name for name in query.runs.split(",") if name))
    if len(names) > MOST_RUNS:
        raise Impossible(
            f"{len(names)} runs are too many for one answer; ask for at most {MOST_RUNS}.", "bad_parameter"
        )
    runs = [ports.runs.get(name).value for name in names]
    curves_by_run = {run.name: _curves(ports, run, query) for run in runs}
    return {"runs": curves_by_run, "records": [queries.shown_run(ports, run) for run in runs] if query.records else []}


def _curves(ports: WorkspacePorts, run: Run, query: CurvesQuery) -> Series:
    """Return the curves of one run. Sketches of archived runs, which a list shows repeatedly, are computed once."""
    steps = (-inf if query.first is UNSET else query.first, inf if query.last is UNSET else query.last)
    if run.archive.at is None or query.points > SKETCH or steps != metrics.EVERYWHERE:
        return metrics.since(ports, run, Cursor(), query.name or None, query.points, steps)

    def draw() -> Series:
        return metrics.since(ports, run, Cursor(), query.name or None, query.points)

    return ports.memory.answer(SKETCHES, ports.clock(), draw, (run.name, query.name or "", query.points))

"""Every place where bytes from outside are read. Any input gives a value of ours or a named error.

Each target takes bytes and returns nothing; a fault is any other exception, or a failed assertion.
"""

from __future__ import annotations

import base64
import json
import tempfile
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from functions import access
from functions import queues as functions_queues
from shared.adapters.azureml.failures import failure_of
from shared.adapters.tables.records import from_row, to_row
from shared.adapters.tables.run_table import _run
from shared.api import records
from shared.api.requests import RunsQuery
from shared.drops.model import Drop, DropState
from shared.events import incoming
from shared.jobs.build import build
from shared.jobs.data import data_of, read_data
from shared.jobs.order import JobOrder
from shared.jobs.readers.azureml import read_layer
from shared.jobs.readers.job_file import read_job_file
from shared.jobs.readers.run_event import job_of
from shared.kernel.drop_key import DropKey
from shared.kernel.errors import BadInput, BadMessage, TrainyardError
from shared.kernel.operation import READER
from shared.kernel.parsing import read_body, read_key, read_query, read_time
from shared.messages.declared import QUEUES
from shared.runs.decide import failing_log, fold_metrics
from shared.runs.intake.create import digest
from shared.runs.intake.request import RunRequest
from shared.runs.model import Run, RunState
from shared.runs.results.archive import MANIFEST
from shared.runs.results.artifacts import files_of
from shared.runs.results.metric_files import json_row
from shared.runs.views.logs import whole_characters
from tests.fakes.ports import FakeBlobs
from tests.fakes.world import ROUTE, World, trainers_folder

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def job_file(data: bytes) -> None:
    """A job file of a drop, then the job built from it, its record, and the answer that shows it."""
    with suppress(BadInput):
        file = read_job_file("job.yaml", data)
        drop = data_of(DropKey("mnist", "a"), single_file=False)
        order = JobOrder(
            "mnist-0",
            "t",
            ROUTE.template,
            ROUTE.limits,
            ROUTE.defaults,
            read_layer(file.document),
            data=drop,
            root=drop,
        )
        built = build(order)
        file.explain(built.problems)
        if not built.problems:
            assert built.job
            _comes_back(
                Run.of(
                    name="mnist-0",
                    drop="mnist/a",
                    route="mnist",
                    fingerprint="f",
                    experiment="e",
                    cluster="c",
                    nodes=1,
                    created_at=NOW,
                    request=built.job,
                )
            )


def body(data: bytes) -> None:
    """The body of POST /api/runs."""
    with suppress(BadInput):
        request = read_body(data, RunRequest)
        digest(request)
        if request.data:
            read_data(request.data)


def query(data: bytes) -> None:
    """Query parameters and headers."""
    text = data.decode("utf-8", "replace")
    name, _, value = text.partition("=")
    with suppress(BadInput):
        read_query({name: value, "since": value, "limit": value, "continue": value}, RunsQuery)
    with suppress(BadInput):
        read_key(text)
    with suppress(BadInput):
        read_time(text)


def principal(data: bytes) -> None:
    """App Service's header, genuine and forged."""
    for text in (data.decode("latin-1"), base64.b64encode(data).decode()):
        with suppress(access.Denied):
            access.check(READER, "GET", {"X-MS-CLIENT-PRINCIPAL": text}, {"WEBSITE_AUTH_ENABLED": "true"})


def event(data: bytes) -> None:
    """A message of Event Grid, in either schema."""
    with suppress(BadMessage):
        message = incoming.decode(data)
        written = incoming.blob_written(message)
        assert written is None or written.name
        job_of(message)


def message(data: bytes) -> None:
    """A message on each of the queues, passed to the function that the host calls."""
    vars(functions_queues)["the_system"] = lambda: _world().system
    for queue in QUEUES:
        with suppress(TrainyardError):
            functions_queues.receive(queue, data)


def metrics(data: bytes) -> None:
    """A metrics file."""
    lines = data.decode("utf-8", "replace").split("\n")
    folded = fold_metrics(row for line in lines if (row := json_row(line)))
    json.dumps([folded.last, folded.best, folded.best_steps], allow_nan=False)
    _comes_back(
        Run.of(
            name="mnist-0",
            drop="",
            route="",
            fingerprint="",
            experiment="e",
            cluster="c",
            nodes=1,
            created_at=NOW,
            last_metrics=folded.last,
            best_metrics=folded.best,
            best_steps=folded.best_steps,
        )
    )


def log(data: bytes) -> None:
    """A rank's log, cut anywhere, and the reason of a failure that is read from the log's end."""
    whole = whole_characters(data)
    assert data.startswith(whole)
    assert len(data) - len(whole) <= 3
    text = data.decode("utf-8", "replace")
    file, tail = failing_log({"std_log_process_0.txt": text, "std_log_process_1.txt": text[::-1]}, 15)
    assert not tail or file
    failure_of(text)


def manifest(data: bytes) -> None:
    """A manifest in the output container, where others may write."""
    blobs = FakeBlobs()
    blobs.put("output", f"e/mnist-0/{MANIFEST}", data)
    with suppress(BadInput):
        found = files_of(blobs, "e/mnist-0")
        assert all(isinstance(name, str) for name in found.files)


def row(data: bytes) -> None:
    """Rows of older versions or edited by hand: the text is in one column of each record at a time."""
    text = data.decode("utf-8", "replace")
    written: list[Any] = [
        Run.of(name="mnist-0", drop="", route="", fingerprint="", experiment="e", cluster="c", nodes=1, created_at=NOW),
        Drop(DropKey("mnist", "a"), DropState.OPEN, "t", NOW),
    ]
    for record in written:
        known: dict[str, Any] = {"key": record.key} if isinstance(record, Drop) else {}
        columns = to_row(record, skip=tuple(known))
        for column in columns:
            with suppress(BadInput):
                from_row(type(record), {**columns, column: text}, **known)
        if isinstance(record, Run):
            shown = _run({**columns, "state": text, "RowKey": f"t!{text}"})
            assert isinstance(shown.progress.state, RunState)
            records.run(shown)


_ALL = (job_file, body, query, principal, event, message, metrics, log, manifest, row)
TARGETS: dict[str, Callable[[bytes], None]] = {target.__name__: target for target in _ALL}


def _comes_back(run: Run) -> None:
    """Check that a written record can be read and shown."""
    with suppress(BadInput):  # too long for a row
        columns = {name: cell[0] if isinstance(cell, tuple) else cell for name, cell in to_row(run).items()}
        assert from_row(Run, columns) == run
        json.dumps(records.run(run), allow_nan=False)


@cache
def _world() -> World:
    return World(trainers_folder(Path(tempfile.mkdtemp(prefix="fuzz"))))

"""Metrics of code that does not know Trainyard: a JSON document, printed lines, TensorBoard's events."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.event_file_writer import EventFileWriter
from tensorboard.util.tensor_util import make_tensor_proto

from shared.api import live
from shared.api.requests import LiveQuery
from shared.kernel.errors import Impossible
from shared.kernel.person import Person
from shared.runs.intake import create
from shared.runs.intake.request import RunRequest
from shared.runs.messages import ArchiveRun
from shared.runs.model import Run, RunState
from shared.runs.results import printed_metrics
from shared.runs.results.archive import archive_run
from shared.runs.views import metrics, notes_and_tags
from tests.fakes.parts import changed
from tests.fakes.world import World, trainers_folder

DATA = "drops/shelf/a"


@pytest.fixture
def world(tmp_path: Path) -> World:
    made = World(trainers_folder(tmp_path))
    made.blobs.put("drops", "shelf/a/1.bin")
    return made


@pytest.fixture
def run(world: World) -> Run:
    """A run whose job runs, and has written nothing yet."""
    made = create.create_run(world.system, RunRequest(template="mnist", data=DATA))
    world.run_until_idle()
    world.jobs.set(made.name, "Running")
    world.system.runs.update(old := world.system.runs.get(made.name), changed(old.value, state=RunState.RUNNING))
    return made


def write(world: World, run: Run, path: str, data: bytes) -> None:
    world.blobs.put("azureml-blobstore", f"trainyard/{run.name}/{path}", data)


def say(world: World, run: Run, text: str) -> None:
    world.blobs.put("azureml", f"ExperimentRun/dcid.{run.name}/user_logs/std_log_process_0.txt", text.encode())


def archived(world: World, run: Run) -> Run:
    world.jobs.set(run.name, "Completed")
    world.system.runs.update(old := world.system.runs.get(run.name), changed(old.value, state=RunState.COMPLETED))
    archive_run(world.system, ArchiveRun(run.name))
    return world.system.runs.get(run.name).value


def series(world: World, run: Run) -> dict[str, list[tuple[float, float]]]:
    found = metrics.series(world.system, run.name)
    return {name: [(step, value) for step, value, _ in points] for name, points in found.items()}


def event_file(folder: Path, values: dict[int, Any]) -> bytes:
    """Return the file that TensorBoard's own writer makes of a metric `loss` with these values by step."""
    writer = EventFileWriter(str(folder))
    for step, value in values.items():
        writer.add_event(Event(wall_time=100.0 + step, step=step, summary=Summary(value=[value])))
    writer.close()
    (file,) = folder.iterdir()
    return file.read_bytes()


@pytest.mark.parametrize("path", ["metrics/metrics.json", "models/last/metrics.json"])
def test_a_metrics_json_is_read_wherever_the_job_wrote_it(world: World, run: Run, path: str) -> None:
    """A JSON object gives one row, a list of objects several, live and from the archive. A nested value's name
    begins with its object's name."""
    write(world, run, path, b'{"accuracy": 0.9, "test": {"f1": 0.5}, "note": "x"}')
    assert series(world, run) == {"accuracy": [(1, 0.9)], "test.f1": [(1, 0.5)]}
    write(world, run, path, b'[{"step": 3, "loss": 2}, {"step": 4, "loss": 1}]')
    assert series(world, run) == {"loss": [(3, 2.0), (4, 1.0)]}
    run = archived(world, run)
    assert run.measured.best == {"loss": 1.0}
    assert series(world, run) == {"loss": [(3, 2.0), (4, 1.0)]}


def test_a_metrics_json_that_is_written_anew_goes_on(world: World, run: Run) -> None:
    """A follower gets each new content once, and never half a document."""
    got, cursor = [], ""
    for data in (b'{"loss": 3}', b'{"loss": 3}', b'{"lo', b'{"loss": 2}'):
        write(world, run, "metrics/metrics.json", data)
        told = live.get_live(world.system, run.name, LiveQuery(after=cursor))
        got += told["metrics"]["series"].get("loss", [])
        cursor = told["metrics"]["next"]
    assert [(step, value) for step, value, _ in got] == [(1, 3), (2, 2)]


def test_events_of_tensorboard_are_read_as_they_grow(world: World, run: Run, tmp_path: Path) -> None:
    """Numbers of PyTorch and TensorFlow 2, written in pieces that cut an event, are read once, with step and time.
    Those of a folder `validation` have it in their names. The archive has the same."""
    tensor = make_tensor_proto(0.25)
    keras = Summary.Value(tag="loss", tensor=tensor)
    keras.metadata.plugin_data.plugin_name = "scalars"
    values = {step: Summary.Value(tag="Loss/train", simple_value=step / 2) for step in range(1, 20)}
    data = event_file(tmp_path / "a", {**values, 20: Summary.Value(tag="text", tensor=make_tensor_proto("words"))})
    got: list[Any] = []
    cursor = ""
    for end in range(0, len(data) + 37, 37):
        write(world, run, "models/runs/a/events.out.tfevents.1.host", data[:end])
        told = live.get_live(world.system, run.name, LiveQuery(after=cursor))
        got += told["metrics"]["series"].get("Loss/train", [])
        cursor = told["metrics"]["next"]
    assert [tuple(point) for point in got] == [(step, step / 2, 100.0 + step) for step in range(1, 20)]
    write(world, run, "models/validation/events.out.tfevents.2.host", event_file(tmp_path / "b", {7: keras}))
    expected = {"Loss/train": [(step, step / 2) for step in range(1, 20)], "validation/loss": [(7, 0.25)]}
    assert series(world, run) == expected
    run = archived(world, run)
    assert series(world, run) == expected
    assert run.measured.best == {"Loss/train": 0.5, "validation/loss": 0.25}


@pytest.mark.parametrize("data", [b"", b"no events", b"\xff" * 5000, b"\x08" + b"\0" * 40])
def test_what_is_no_event_file_gives_nothing(world: World, run: Run, data: bytes) -> None:
    """A broken event file is no error, and hides no other files."""
    write(world, run, "metrics/events.out.tfevents.1", data)
    write(world, run, "metrics/a.jsonl", b'{"step": 1, "loss": 2}')
    run = archived(world, run)
    assert series(world, run) == {"loss": [(1, 2.0)]}


def test_printed_numbers_are_metrics_of_a_run_that_has_no_others(world: World, run: Run) -> None:
    """`name=value` in the first rank's log gives a curve, each point once while the log grows, and the archive
    keeps it."""
    text = "loading 3 files\nepoch=1 step=10 loss=0.5 acc=90%\nepoch=2, step=20, loss=2.5e-1\nsize=12MB a.b=c\n"
    got, cursor = [], ""
    for end in range(0, len(text) + 13, 13):
        say(world, run, text[:end])
        told = live.get_live(world.system, run.name, LiveQuery(after=cursor))
        got += told["metrics"]["series"].get("loss", [])
        cursor = told["metrics"]["next"]
    assert [tuple(point) for point in got] == [(10, 0.5, None), (20, 0.25, None)]
    run = archived(world, run)
    assert live.get_live(world.system, run.name, LiveQuery(after=cursor))["metrics"]["series"] == {}
    assert series(world, run) == {"loss": [(10, 0.5), (20, 0.25)], "acc": [(10, 90.0)]}
    assert run.measured.best == {"loss": 0.25, "acc": 90.0}


def test_a_metrics_file_hides_what_was_printed(world: World, run: Run) -> None:
    """Files take precedence, because a trainer that writes files prints the same numbers for people."""
    say(world, run, "loss=9\n")
    write(world, run, "metrics/metrics.jsonl", json.dumps({"step": 1, "loss": 1}).encode() + b"\n")
    assert series(world, run) == {"loss": [(1, 1.0)]}


def test_a_metrics_json_stands_beside_what_was_printed(world: World, run: Run) -> None:
    """A document of final numbers at the end does not hide the printed curve."""
    say(world, run, "step=1 loss=9\nstep=2 loss=5\n")
    assert metrics.series(world.system, run.name, printed=False) == {}, "the sweep reads no logs"
    write(world, run, "models/metrics.json", b'{"accuracy": 0.5}')
    expected = {"loss": [(1, 9.0), (2, 5.0)], "accuracy": [(3, 0.5)]}
    assert series(world, run) == expected
    run = archived(world, run)
    assert series(world, run) == expected
    assert run.measured.best == {"loss": 5.0, "accuracy": 0.5}


def test_a_pattern_says_what_a_printed_line_means(world: World, run: Run) -> None:
    """The tag metrics_pattern gives the text before each number; numbers that are missing in a line are skipped.
    The tag can be set on a live run."""
    say(world, run, "Epoch 3/10 | train loss: 0.5 | val loss:0.75\nEpoch 4/10 took 12 s\nval loss: -1e-3\n")
    assert series(world, run) == {}
    tag = {"metrics_pattern": "Epoch {epoch} train loss: {loss} val loss: {val_loss}"}
    notes_and_tags.change_tags(world.system, run.name, tag, (), Person("ada"))
    assert series(world, run) == {"loss": [(1, 0.5)], "val_loss": [(1, 0.75), (3, -0.001)]}


@pytest.mark.parametrize("pattern", ["loss", "{loss}", "a {b} {c}", "loss {}"])
def test_a_pattern_without_names_is_refused(world: World, run: Run, pattern: str) -> None:
    """The refusal of the submission or tag shows the right form."""
    with pytest.raises(Impossible, match="the metric's name in braces"):
        notes_and_tags.change_tags(world.system, run.name, {"metrics_pattern": pattern}, (), Person("ada"))
    with pytest.raises(Impossible, match="the metric's name in braces"):
        create.create_run(world.system, RunRequest(template="mnist", data=DATA, tags={"metrics_pattern": pattern}))


@pytest.mark.parametrize(
    ("line", "row"),
    [
        ("consider passing CUDA_LAUNCH_BLOCKING=1", {}),
        ("smaller than the logging interval Trainer(log_every_n_steps=50).", {}),
        ("LR=0.1 Loss_A=2 F1=0.5", {"LR": 0.1, "Loss_A": 2.0, "F1": 0.5}),
    ],
)
def test_hints_are_no_metrics(line: str, row: dict[str, float]) -> None:
    """A variable of the environment or a setting in a sentence is not a metric of the training."""
    assert printed_metrics.reader()(line) == row


@pytest.mark.parametrize("line", ["1" * 200_000, "a=" * 100_000, "loss=" + "1" * 200_000, "loss " * 50_000])
def test_no_line_takes_long(line: str) -> None:
    """Long lines that almost match are parsed in linear time; a backtracking regular expression would take hours."""
    for pattern in ("", "loss {loss}", "loss loss {loss}"):
        assert printed_metrics.reader(pattern)(line) == {}

"""The destinations of metrics rows: a file that a resumed training continues, MLflow, TensorBoard."""

from __future__ import annotations

import argparse
import json
import socket
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import metrics
import pytest
import torch
import training
from meeting import Place
from metrics import Metrics
from speed import Speed
from speed import add_arguments as add_speed
from torch.nn.parallel import DistributedDataParallel

from shared.usage import api as usage_api
from tests.trainers import launch as run


def steps(folder: Path) -> list[int]:
    return [row["step"] for row in run.metrics(folder)]


def test_rows_after_the_checkpoint_go(tmp_path: Path) -> None:
    """A restored object keeps the rows from before the checkpoint, drops later rows, and continues."""
    with Metrics(tmp_path, 0) as first:
        for step in (10, 20, 20):
            first.write(step, 1, train_loss=1.0)
        state = first.state_dict()
        for step in (30, 40):
            first.write(step, 1, train_loss=1.0)
    with Metrics(tmp_path, 0) as second:
        second.load_state_dict(state)
        assert steps(tmp_path) == [10, 20, 20]
        second.write(30, 1, train_loss=2.0)
    assert steps(tmp_path) == [10, 20, 20, 30]
    assert second.state_dict() == {"rows": 4, "step": 30}


def test_without_a_checkpoint_an_older_file_is_replaced(tmp_path: Path) -> None:
    """A training that starts from the beginning starts a new file."""
    for step in (10, 20):
        with Metrics(tmp_path, 0) as started:
            started.write(step, 1, train_loss=1.0)
    assert steps(tmp_path) == [20]


def test_rows_that_are_lost_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """If the file has fewer rows than the checkpoint, the log gives the number, and the training continues."""
    with Metrics(tmp_path, 0) as rows:
        rows.write(10, 1, train_loss=1.0)
        rows.load_state_dict({"rows": 3, "step": 30})
        rows.write(40, 1, train_loss=1.0)
    assert "3 rows were expected before the checkpoint, 1 are there" in capsys.readouterr().out
    assert steps(tmp_path) == [10, 40]


def test_each_process_counts_and_one_writes(tmp_path: Path) -> None:
    """All ranks have the same state, so that any rank can be rank 0 after a restart."""
    for rank in (0, 1):
        with Metrics(tmp_path / str(rank), rank) as rows:
            rows.write(10, 1, train_loss=1.0)
            assert rows.state_dict() == {"rows": 1, "step": 10}
    assert not (tmp_path / "1").exists()


def test_a_row_that_nobody_wrote_comes_with_the_next_writer(tmp_path: Path) -> None:
    """If rank 0 dies before writing some rows, the next rank 0 writes the missing rows from its memory, and
    completes a half-written row."""
    other, late = Metrics(tmp_path, 1), Metrics(tmp_path, 2)
    with Metrics(tmp_path, 0) as first:
        for step in (1, 2, 3):
            first.write(step, 1, loss=1.0)
            other.write(step, 1, loss=1.0)
    file = tmp_path / "metrics.jsonl"
    file.write_text(file.read_text()[: -len(file.read_text().splitlines()[-1]) // 2])
    late.load_state_dict(other.live_state_dict())
    with Metrics(tmp_path, 0) as next_first:
        next_first.load_state_dict(late.live_state_dict())
        assert steps(tmp_path) == [1, 2, 3]
        next_first.write(4, 1, loss=1.0)
    assert steps(tmp_path) == [1, 2, 3, 4]


def test_a_row_whose_step_was_not_made_goes(tmp_path: Path) -> None:
    """A row of a step that no survivor made is removed, and written again with the step."""
    other = Metrics(tmp_path, 1)
    with Metrics(tmp_path, 0) as first:
        first.write(1, 1, loss=1.0)
        other.write(1, 1, loss=1.0)
        first.write(2, 1, loss=1.0)
    with Metrics(tmp_path, 0) as next_first:
        next_first.load_state_dict(other.live_state_dict())
        assert steps(tmp_path) == [1]
        next_first.write(2, 1, loss=2.0)
    assert steps(tmp_path) == [1, 2]


def test_a_full_disk_costs_no_row(small_disk: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """While the disk is full or read-only, one line reports it and the training continues; afterwards all rows are
    in the file, each once and complete."""
    with Metrics(small_disk.path, 0) as rows:
        rows.write(1, 1, loss=1.0)
        small_disk.fill()
        for step in range(2, 300):  # more than the last block of the file takes
            rows.write(step, 1, loss=1.0)
        assert capsys.readouterr().out.count("rows cannot be written: [Errno 28]") == 1
        small_disk.empty()
        rows.write(300, 1, loss=1.0)
        assert "rows can be written again" in capsys.readouterr().out
        rows.state_dict()  # closes the file: a disk with an open one can't become read-only
        small_disk.remount("ro")
        rows.write(301, 1, loss=1.0)
        assert capsys.readouterr().out.count("rows cannot be written: [Errno 30]") == 1
        small_disk.remount("rw")
        rows.write(302, 1, loss=1.0)
    assert steps(small_disk.path) == list(range(1, 303))


@pytest.fixture
def tracking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that MLflow logs to. Importing MLflow takes long on a loaded machine."""
    monkeypatch.setattr(metrics, "LAST_ROWS_SECONDS", run.DEADLINE_SECONDS)
    folder = tmp_path / "mlruns"
    monkeypatch.setenv("MLFLOW_TRACKING_URI", folder.as_uri())
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.delenv("MLFLOW_RUN_ID", raising=False)
    return folder


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
def test_rows_reach_mlflow(tracking: Path) -> None:
    """With MLFLOW_TRACKING_URI, each value of each row is in MLflow under its name and step."""
    with Metrics(None, 0) as rows:
        rows.write(10, 1, train_loss=0.5)
        rows.write(20, 1, train_loss=0.25)
    [path] = tracking.glob("*/*/metrics/train_loss")
    assert [line.split()[1:] for line in path.read_text().splitlines()] == [["0.5", "10"], ["0.25", "20"]]
    assert "end_time: null" not in (path.parents[1] / "meta.yaml").read_text()


def test_the_local_cloud_goes_without_mlflow(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With TRAINYARD_MLFLOW off, rows go only to their file, and no message mentions MLflow."""
    with Metrics(
        tmp_path, 0, environ={"MLFLOW_TRACKING_URI": "https://127.0.0.1:1", "TRAINYARD_MLFLOW": "off"}
    ) as rows:
        rows.write(1, 1, loss=0.5)
    assert (tmp_path / "metrics.jsonl").exists()
    assert "MLflow" not in capsys.readouterr().out


@pytest.mark.parametrize("given", [False, True], ids=["by hand", "by Azure ML"])
def test_without_mlflow_a_line_says_so(
    tracking: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], given: bool
) -> None:
    """Without mlflow installed, everything else works, and one line says that metrics do not go to MLflow, unless
    Azure ML set the address, as it does for every job."""
    monkeypatch.setitem(sys.modules, "mlflow", None)
    if given:
        monkeypatch.setenv("MLFLOW_RUN_ID", "run")
    with Metrics(tracking / "rows", 0) as rows:
        rows.write(10, 1, train_loss=0.5)
        rows.write(20, 1, train_loss=0.5)
    line = "MLFLOW_TRACKING_URI is set, but mlflow is not installed: metrics are not sent there\n"
    assert capsys.readouterr().out == ("" if given else line)
    assert steps(tracking / "rows") == [10, 20]


def test_a_silent_tracking_server_holds_nothing_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A server that accepts but never answers costs the rows, a log line, and a bounded wait at the end."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://127.0.0.1:{server.getsockname()[1]}")
        monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "2")
        monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
        monkeypatch.setattr(metrics, "LAST_ROWS_SECONDS", 0.1)
        with Metrics(tmp_path, 0) as rows:
            rows.write(10, 1, train_loss=0.5)
        assert "MLflow: gave up after 0 s with" in capsys.readouterr().out
        assert steps(tmp_path) == [10]
        assert rows._mlflow
        rows._mlflow._thread.join(60)  # the request's own time-out ends it
    assert "metrics are no longer sent there" in capsys.readouterr().out


def test_rows_reach_tensorboard(tmp_path: Path) -> None:
    """TensorBoard's events hold each value under its name and step; events of repeated steps are hidden."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    for restored in (None, {"rows": 1, "step": 10}):
        with Metrics(None, 0, tmp_path) as rows:
            if restored:
                rows.load_state_dict(restored)
            else:
                rows.write(10, 1, train_loss=0.5)
            rows.write(20, 1, train_loss=0.25)
    events = EventAccumulator(str(tmp_path))
    events.Reload()
    assert [(event.step, event.value) for event in events.Scalars("train_loss")] == [(10, 0.5), (20, 0.25)]


def test_without_tensorboard_a_line_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without tensorboard installed, one line says that no events are written."""
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with Metrics(None, 0, tmp_path / "events") as rows:
        rows.write(10, 1, train_loss=0.5)
        rows.write(20, 1, train_loss=0.5)
    said = [line for line in capsys.readouterr().out.splitlines() if "tensorboard" in line]  # MLflow may speak, too
    assert said == ["--tensorboard-dir: tensorboard is not installed, so nothing is written there"]


# --- speed -----------------------------------------------------------------------------------------------------------


def speed(*args: str) -> Speed:
    parser = argparse.ArgumentParser()
    add_speed(parser)
    return Speed.of(parser.parse_args(args))


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_without_a_gpu_only_the_order_of_memory_is_on() -> None:
    """bfloat16 and torch.compile are on by default only with a GPU; each can be switched either way."""
    assert speed() == Speed(amp=False, compile=False, channels_last=True)
    assert speed("--amp", "--compile", "--no-channels-last") == Speed(amp=True, compile=True, channels_last=False)
    assert str(speed()) == "amp off, compile off, channels_last on"


@pytest.mark.parametrize("on", [True, False])
def test_each_switch_does_what_it_says(on: bool) -> None:
    """bfloat16 inside `autocast`, and channels_last weights and images, are on or off as chosen; compilation needs
    the flag."""
    device, fast = torch.device("cpu"), Speed(amp=on, channels_last=on)
    net: Any = fast.prepare(torch.nn.Conv2d(3, 4, 3), device)
    images = fast.images(torch.zeros(2, 3, 8, 8))
    with fast.autocast(device):
        assert (net(images).dtype == torch.bfloat16) is on
    for tensor in (net.weight, images):
        assert tensor.is_contiguous(memory_format=torch.channels_last) is on
    assert fast.compiled(net) is net


def test_a_row_is_json(tmp_path: Path) -> None:
    """A line of metrics.jsonl has time, step, epoch and the values, in this order."""
    with Metrics(tmp_path, 0) as rows:
        rows.write(10, 2, train_loss=0.5)
    assert list(json.loads((tmp_path / "metrics.jsonl").read_text())) == ["time", "step", "epoch", "train_loss"]


def test_each_metric_that_the_app_reads_is_written() -> None:
    """`show` explains the time from these names, so each name must be written by a trainer."""
    read = {value for name, value in vars(usage_api).items() if name.isupper() and str(value).endswith("_share")}
    written = (Path(training.__file__)).read_text(encoding="utf-8")
    assert len(read) == 3
    assert {name for name in read if f'"{name}"' not in written} == set()


def test_a_process_says_how_long_it_waits_for_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """The wait is the exposed part of one step's exchange, times the steps. The first row and a single process
    report none."""
    made, rows = object.__new__(DistributedDataParallel), []
    torch.nn.Module.__init__(made)
    found = {"backward_comm_time": 70_000_000, "backward_compute_comm_overlap_time": 20_000_000}
    monkeypatch.setattr(DistributedDataParallel, "_get_ddp_logging_data", lambda _self: found)
    monkeypatch.setattr(DistributedDataParallel, "_set_ddp_runtime_logging_sample_rate", lambda _self, _rate: None)
    kept = SimpleNamespace(write=lambda step, _epoch, **values: rows.append((step, values)))
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], 0.1)
    t = training.Training.__new__(training.Training)
    vars(t).update(
        model=made, place=Place(0, 2, "env://", "gloo"), metrics=kept, optimizer=optimizer,
        position=SimpleNamespace(step=10, epoch=1), device=torch.device("cpu"), saved=0.0,
        last_row_at=0.0, last_row_step=None,
    )  # fmt: skip
    t.row(1.0, 0.0)
    t.position.step = 20
    t.row(1.0, 0.0)
    t.place = Place(0, 1, "env://", "gloo")
    t.position.step = 30
    t.row(1.0, 0.0)
    assert [values.get("others_wait_share") for _, values in rows] == [None, pytest.approx(0.5), None]

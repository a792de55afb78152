"""The metrics of a training, written to metrics.jsonl, MLflow and TensorBoard."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import math
import os
import queue
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import dist
import torch
from files import replacing

# Seconds for which the end of a training waits for rows on their way to MLflow. After a failure or a stop the wait is
# shorter, because other processes wait for this process to end.
LAST_ROWS_SECONDS, LAST_ROWS_SECONDS_AFTER_ERROR = 20.0, 2.0

# A row has about 300 bytes. This number covers an epoch's log lines, and a disk that is full for a while.
ROWS_IN_MEMORY = 1000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add --metrics-dir and --tensorboard-dir."""
    group = parser.add_argument_group("metrics", "rows are also sent to MLflow if MLFLOW_TRACKING_URI is set")
    group.add_argument("--metrics-dir", type=Path, help="folder for metrics.jsonl (default: none)")
    group.add_argument("--tensorboard-dir", type=Path, help="folder for TensorBoard's events (default: none)")


class Metrics:
    """A writer for rows of numbers. Every process has and may call a writer; only rank 0 writes.

    A line of `metrics.jsonl` is `{"time": unix seconds, "step": int, "epoch": int, <name>: number, ...}` and reaches
    the file at once. Without a folder, no file is written. A new training replaces an older file. A training that
    resumes from a checkpoint keeps the rows from before the checkpoint and drops the rows after it, because it will
    write those steps again.

    Every process holds the newest rows in memory. If rank 0 dies before it writes a row, or if the disk is full, the
    next writer writes the missing rows. A checkpoint's state should include the metrics: `state_dict` also flushes the
    rows so far to a mounted folder.
    """

    def __init__(
        self,
        folder: Path | None,
        rank: int,
        tensorboard: Path | None = None,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        writes = rank == 0
        self._path = folder / "metrics.jsonl" if folder and writes else None
        self._file: IO[str] | None = None
        self._tensorboard_dir = tensorboard if writes else None
        self._tensorboard: Any = None
        self._mlflow = MLflow(environ) if writes and _wants_mlflow(environ) else None
        self._rows = self._step = 0
        self._recent: deque[str] = deque(maxlen=ROWS_IN_MEMORY)  # the lines of the newest rows
        self._in_file: int | None = 0  # rows; None if the file must be read first
        self._failing = False

    def write(self, step: int, epoch: int, **values: float) -> None:
        """Add one row. A value of nan or infinity raises ValueError in every process.

        If a row can't be written to the file, the problem is logged, and the row is written with a later one.
        """
        if unfit := [name for name, value in values.items() if not math.isfinite(value)]:
            raise ValueError(f"{unfit[0]} is {values[unfit[0]]} at step {step}")
        if self._tensorboard_dir and (board := self._board()):
            for name, value in values.items():
                board.add_scalar(name, value, step)
        if self._mlflow:
            self._mlflow.log({"epoch": epoch, **values}, step)
        row = {"time": round(time.time(), 3), "step": step, "epoch": epoch, **values}
        self._recent.append(json.dumps(row) + "\n")
        self._rows += 1
        self._step = step
        self._put_down()

    def _put_down(self) -> None:
        """Append the file's missing rows from memory."""
        if not self._path or self._in_file == self._rows:
            return
        try:
            if self._in_file is None:
                self._in_file = self._kept_in_file(self._path)
            file = self._open()
            missing = min(self._rows - self._in_file, len(self._recent))
            file.write("".join(list(self._recent)[len(self._recent) - missing :]))
            file.flush()
        except OSError as error:
            self._in_file = None
            if not self._failing:
                _note(
                    f"{self._path}: rows cannot be written: {error}; the training continues, "
                    "and the rows are kept for later"
                )
            self._failing = True
            self._drop_file()
            return
        self._in_file = self._rows
        if self._failing:
            _note(f"{self._path}: rows can be written again")
        self._failing = False

    def _kept_in_file(self, path: Path) -> int:
        """Cut the file down to the rows that count, drop an incomplete last line, and return the number of rows
        kept."""
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True) if path.exists() else []
        kept = [line for line in lines[: self._rows] if line.endswith("\n")]
        forgotten = self._rows - len(self._recent)
        if len(kept) < forgotten:
            _note(f"{path}: {forgotten} rows were expected before the checkpoint, {len(kept)} are there")
        if len(kept) < len(lines):
            with replacing(path) as new:
                new.write_text("".join(kept), encoding="utf-8")
        return max(len(kept), forgotten)

    def _open(self) -> IO[str]:
        if not self._file:
            assert self._path
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self._path.open("a" if self._in_file else "w", encoding="utf-8")
        return self._file

    def _board(self) -> Any:
        """Return TensorBoard's writer, which hides older events of repeated steps, or None without TensorBoard."""
        if not self._tensorboard:
            try:
                tensorboard = importlib.import_module("torch.utils.tensorboard")
            except ImportError:
                _note("--tensorboard-dir: tensorboard is not installed, so nothing is written there")
                self._tensorboard_dir = None
                return None
            again = self._step + 1 if self._rows else None
            self._tensorboard = tensorboard.SummaryWriter(str(self._tensorboard_dir), purge_step=again)
        return self._tensorboard

    def state_dict(self) -> dict[str, int]:
        """Return the number of rows and the step of the last row."""
        self._put_down()
        self._close_file()  # a mounted container receives a file on close
        return {"rows": self._rows, "step": self._step}

    def live_state_dict(self) -> dict[str, Any]:
        """Return the state and the newest rows, for another process to write."""
        return {**self.state_dict(), "recent": list(self._recent)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue after the number of rows in the state."""
        if "recent" in state:
            self._recent = deque(state["recent"], ROWS_IN_MEMORY)
        elif state["rows"] > self._rows:
            self._recent.clear()
        else:
            for _ in range(min(self._rows - state["rows"], len(self._recent))):
                self._recent.pop()
        self._rows, self._step = state["rows"], state["step"]
        self._close_file()
        self._in_file = None
        self._put_down()

    def _close_file(self) -> None:
        if not self._file:
            return
        try:
            self._file.close()
        except OSError:  # reported when the next row is written
            self._in_file = None
        self._file = None

    def _drop_file(self) -> None:
        """Close the file, and discard anything not yet written."""
        with contextlib.suppress(OSError):
            if self._file:
                self._file.close()
        self._file = None

    def __enter__(self) -> Metrics:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._close_file()
        if self._tensorboard:
            self._tensorboard.close()
        if self._mlflow:
            if error:
                self._mlflow.close("FAILED", LAST_ROWS_SECONDS_AFTER_ERROR)
            else:
                self._mlflow.close("FINISHED", LAST_ROWS_SECONDS)


def _wants_mlflow(environ: Mapping[str, str]) -> bool:
    """Return whether rows also go to MLflow. The local cloud shows only metrics.jsonl, so rows there stay out of
    MLflow.
    """
    return bool(environ.get("MLFLOW_TRACKING_URI")) and environ.get("TRAINYARD_MLFLOW") != "off"


class MLflow:
    """Sends rows to MLflow in a thread, so a slow or absent server can lose rows but never slows the training.

    The run is the one named by MLFLOW_RUN_ID, as on Azure ML, or a new one. MLflow never deletes values, so a step that
    is repeated after a resume has two values.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._given = "MLFLOW_RUN_ID" in environ  # then the creator of the run also ends it
        self._rows: queue.Queue[tuple[dict[str, float], int] | str] = queue.Queue()
        self._thread = threading.Thread(target=self._send, name="mlflow", daemon=True)
        self._thread.start()

    def log(self, values: dict[str, float], step: int) -> None:
        """Queue one row for sending."""
        self._rows.put((values, step))

    def close(self, status: str, seconds: float) -> None:
        """End the run with this MLflow status, and wait at most `seconds` until the queued rows are sent."""
        self._rows.put(status)
        self._thread.join(seconds)
        if self._thread.is_alive():
            _note(f"MLflow: gave up after {seconds:.0f} s with {self._rows.qsize()} rows not sent")

    def _send(self) -> None:
        try:
            mlflow = importlib.import_module("mlflow")
        except ImportError:
            if not self._given:  # Azure ML sets the address for every job; the user did not ask for MLflow
                _note("MLFLOW_TRACKING_URI is set, but mlflow is not installed: metrics are not sent there")
            return
        try:
            mlflow.start_run()
            while not isinstance(row := self._rows.get(), str):
                mlflow.log_metrics(*row)
            if not self._given:
                mlflow.end_run(row)
        except Exception as error:  # noqa: BLE001 (tracking is a convenience: whatever it was, the training goes on)
            _note(f"MLflow: {type(error).__name__}: {error}; metrics are no longer sent there")


def _note(text: str) -> None:
    dist.write_line(" ".join(text.split()), sys.stdout)


class Mean:
    """The latest value and the mean of all values, printed as `value (mean)`."""

    def __init__(self) -> None:
        self.value = self._sum = self._weight = 0.0

    def add(self, value: float, weight: float = 1.0) -> None:
        self.value = value
        self._sum += value * weight
        self._weight += weight

    @property
    def mean(self) -> float:
        return self._sum / self._weight if self._weight else math.nan

    def __format__(self, spec: str) -> str:
        return f"{self.value:{spec}} ({self.mean:{spec}})"


def peak_memory_mib(device: torch.device) -> float:
    """Return the peak memory use in MiB: of the GPU if present, otherwise of this process (0 on Windows, which reports
    none).
    """
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 2**20
    if sys.platform == "win32":
        return 0.0
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 2**10  # bytes on macOS, KiB elsewhere

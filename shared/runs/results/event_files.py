"""Rows of TensorBoard's event files, by its own reader."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

RECORD = 16  # bytes around each event: its length, and two checksums
PHASES = ("train", "training", "validation", "val", "test", "eval")  # folders that Keras and others write one file in
log = logging.getLogger(__name__)


def is_event_file(name: str) -> bool:
    return ".tfevents." in PurePosixPath(name).name


def rows(data: bytes, name: str) -> Iterator[tuple[dict[str, Any], int]]:
    """The events with numbers among these bytes, which begin with an event, each with where it ends.

    An event that is not whole ends them. A metric in a folder such as `validation` is called `validation/<tag>`.
    """
    from google.protobuf.message import DecodeError  # with numpy they take some 0.3 s to import: only where needed
    from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
    from tensorboard.compat.proto.event_pb2 import Event

    folder = PurePosixPath(name).parent.name
    before, end = f"{folder}/" if folder in PHASES else "", 0
    with TemporaryDirectory() as temporary:
        (file := Path(temporary, "events")).write_bytes(data)
        for record in RawEventFileLoader(str(file)).Load():
            end += len(record) + RECORD
            try:
                event = Event.FromString(record)
            except DecodeError:
                log.info("%s: an event that can't be read is left out", name)
                continue
            numbers = ((before + value.tag, _number(value)) for value in event.summary.value)
            if values := {name: number for name, number in numbers if number is not None}:
                yield {"step": event.step, "time": event.wall_time, **values}, end


def _number(value: Any) -> float | None:
    """The number of a summary: as TensorFlow 1 and PyTorch write it, or as a tensor of one element."""
    if value.HasField("simple_value"):
        return float(value.simple_value)
    if not value.HasField("tensor") or value.metadata.plugin_data.plugin_name != "scalars":
        return None
    from tensorboard.util.tensor_util import make_ndarray

    array = make_ndarray(value.tensor)
    return float(array.item()) if array.size == 1 else None

"""Our own reader of event files finds the same numbers as TensorBoard's reader."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.compat.tensorflow_stub import dtypes
from tensorboard.summary.writer.event_file_writer import EventFileWriter
from tensorboard.util.tensor_util import make_tensor_proto

from shared.runs.results.event_files import rows

KINDS = ("float32", "float64", "float16", "int32", "int64", "uint8", "int8", "int16", "uint16", "uint32", "uint64")


def written(folder: Path, events: list[Event]) -> bytes:
    """Return the file that TensorBoard's own writer makes of these events."""
    writer = EventFileWriter(str(folder))
    for event in events:
        writer.add_event(event)
    writer.close()
    (file,) = folder.iterdir()
    return file.read_bytes()


def scalar(value: Any, kind: str) -> Summary.Value:
    """Return a tensor as TensorFlow 2 writes a scalar."""
    found = Summary.Value(tag="x", tensor=make_tensor_proto(value, dtype=getattr(dtypes, kind)))
    found.metadata.plugin_data.plugin_name = "scalars"
    return found


def read(data: bytes) -> list[dict[str, Any]]:
    return [row for row, _ in rows(data, "events.out.tfevents.1.h")]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("value", [0, 1, 7, [3], [[5]]])
def test_a_tensor_of_one_element_is_a_number(tmp_path: Path, kind: str, value: Any) -> None:
    """This holds for any type, for a scalar and for a tensor of one element."""
    data = written(tmp_path, [Event(step=4, wall_time=9.5, summary=Summary(value=[scalar(value, kind)]))])
    number = float(value if isinstance(value, int) else str(value).strip("[]"))
    assert read(data) == [{"step": 4, "time": 9.5, "x": number}]


@pytest.mark.parametrize("value", [-1, -7])
@pytest.mark.parametrize("kind", ["float32", "float16", "int32", "int64", "int8"])
def test_negative_numbers_are_kept(tmp_path: Path, kind: str, value: int) -> None:
    """Signed numbers are read as signed."""
    assert read(written(tmp_path, [Event(summary=Summary(value=[scalar(value, kind)]))]))[0]["x"] == value


def test_what_is_no_scalar_is_left_out(tmp_path: Path) -> None:
    """Text, several numbers, other plugins' tensors and other events give no row."""
    other = Summary.Value(tag="x", tensor=make_tensor_proto(1.0))
    values = [scalar([1, 2], "int32"), other, Summary.Value(tag="x", tensor=make_tensor_proto("words"))]
    events = [Event(file_version="brain.Event:2"), *(Event(summary=Summary(value=[value])) for value in values)]
    assert read(written(tmp_path, events)) == []


@given(st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.floats(width=32, allow_nan=False)), max_size=20))
def test_every_step_and_number_comes_through(tmp_path_factory: pytest.TempPathFactory, points: Any) -> None:
    """Signed 64-bit steps and every 32-bit float are read as they were written."""
    events = [Event(step=step, summary=Summary(value=[Summary.Value(tag="y", simple_value=y)])) for step, y in points]
    found = read(written(tmp_path_factory.mktemp("events"), events))
    assert [(row["step"], row["y"]) for row in found] == points


@given(st.integers(0, 400), st.integers(1, 255))
def test_a_changed_byte_invents_no_number(tmp_path_factory: pytest.TempPathFactory, at: int, by: int) -> None:
    """With one changed byte, the rows are a prefix of the true rows, because a wrong checksum ends the reading."""
    events = [Event(step=step, summary=Summary(value=[Summary.Value(tag="y", simple_value=step)])) for step in range(9)]
    data = bytearray(written(tmp_path_factory.mktemp("events"), events))
    true = read(bytes(data))
    data[at % len(data)] ^= by
    found = read(bytes(data))
    assert found == true[: len(found)]

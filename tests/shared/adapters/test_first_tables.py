"""Today's code reads the rows and an archive that the first version left in a storage account.

The first version wrote first_tables.json: a completed run with its archive, a failed run, an elastic run, and their
drops.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from shared.adapters.tables.records import from_row
from shared.api import queries, records
from shared.drops.model import Drop, DropState
from shared.kernel.drop_key import DropKey
from shared.runs.intake import retry_and_continue
from shared.runs.model import Run, RunState
from shared.runs.results import artifacts
from tests.fakes.world import World, trainers_folder

FIRST: dict[str, Any] = json.loads(Path(__file__).with_name("first_tables.json").read_text())


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(trainers_folder(tmp_path))
    for row in FIRST["runs"]:
        world.runs.insert(from_row(Run, row))
    archive = FIRST["archive"]
    world.blobs.put("output", f"{archive['folder']}/manifest.json", json.dumps(archive["manifest"]).encode())
    for file in archive["manifest"]["files"]:
        world.blobs.put("output", f"{archive['folder']}/{file['name']}", b"x" * file["size"])
    return world


def test_old_runs_are_read_and_told(world: World) -> None:
    """Every old run fits today's answer; its parameters are read from its job, its cause from its reason."""
    for row in FIRST["runs"]:
        told = queries.run(world.system, row["name"])
        msgspec.convert(told, records.RunAnswer, strict=False)
        assert told["parameters"] == {"epochs": 2}
    by_state = {row["state"]: row["name"] for row in FIRST["runs"]}
    failed = queries.run(world.system, by_state["failed"])
    assert failed["cause"] == "/in: expected four files, found none"
    done = queries.run(world.system, by_state["completed"])
    seen = {"metric": "test_accuracy", "value": 0.9, "step": None}
    assert (done["best"], done["duration_seconds"]) == ({**seen, "of_model": 0.8, "by": "last value"}, 60)


def test_old_drops_are_read(world: World) -> None:
    """Every old drop's row is read as a drop of today, without an owner."""
    for row in FIRST["drops"]:
        drop = from_row(Drop, row, key=DropKey(row["route"], row["name"]))
        assert (drop.state, drop.owner, drop.generation) == (DropState.SEALED, "", 1)


def test_an_old_archive_is_listed(world: World) -> None:
    """The files of an old archive are the files that its manifest names."""
    name = FIRST["archive"]["folder"].rpartition("/")[2]
    told = artifacts.artifacts(world.system, name)
    assert told["complete"] is True
    assert [file["name"] for file in told["files"]] == [file["name"] for file in FIRST["archive"]["manifest"]["files"]]


def test_old_runs_are_compared_and_tried_again(world: World) -> None:
    """Later features work on old runs too: compare, retry with another parameter, continue."""
    done, failed = (next(r["name"] for r in FIRST["runs"] if r["state"] == s) for s in ("completed", "failed"))
    different = {row["name"] for row in queries.compared(world.system, f"{done},{failed}")["different"]}
    assert "state" in different
    assert "epochs" not in different
    again = retry_and_continue.retry_run(world.system, failed, {"epochs": 5})
    assert (again.progress.state, again.asked.parameters) == (RunState.RECEIVED, {"epochs": 5})
    world.blobs.put("azureml-blobstore", f"trainyard/{done}/checkpoints/1/marker")
    assert retry_and_continue.continue_run(world.system, done, {"epochs": 4}).asked.continues == done

"""A changing folder, dropped repeatedly on one local cloud: its versions, their runs, and refusals."""

from __future__ import annotations

import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from azure.storage.blob import ContainerClient

from emulators.process import wait_for
from local import digits
from local.cloud import Cloud, Options
from tests.e2e.desk import Desk, one_node_each


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    folder = tmp_path_factory.mktemp("desk")
    digits.write(folder / "digits")
    shutil.copytree(folder / "digits", folder / "trained")
    (folder / "trained" / "job.yaml").write_text("inputs:\n  epochs: 1\n")
    (folder / "digits" / "job.yaml").write_text("command: echo done\n")  # the test needs versions and no model
    options = Options(node_start_seconds=0.2, routes=one_node_each(folder))
    with Cloud.start(folder / "cloud", options) as cloud:
        yield Desk(cloud, folder)


@pytest.fixture(scope="module")
def first(desk: Desk) -> dict[str, Any]:
    """The output of `drop` for a new folder."""
    told: dict[str, Any] = desk.ask("drop", "digits", "mnist/v")
    return told


def test_a_route_that_is_not_there_is_told_before_the_upload(desk: Desk) -> None:
    """A typo in the route gives a suggestion, and nothing is uploaded."""
    assert "Did you mean 'mnist'?" in desk.type("drop", "digits", "mnits/v", expect=3).stderr
    assert desk.type("show", "mnits/v", expect=3).returncode == 3


def test_data_is_checked_before_the_upload(desk: Desk) -> None:
    """`drop --check` shows the card of a folder; invalid data is not uploaded, and the error names the file."""
    folder = desk.folder / "checked"
    shutil.copytree(desk.folder / "digits", folder)
    (folder / "job.yaml").unlink()
    said = desk.ask("drop", "checked", "mnist/checked", "--check")
    assert (said["verdict"], said["card"]["totals"]) == ("fine", {"train": 1437, "test": 360})
    labels = folder / "train-labels-idx1-ubyte.gz"
    labels.write_bytes(labels.read_bytes()[:500])
    assert desk.ask("drop", "checked", "mnist/checked", "--check", expect=1)["verdict"] == "refused"
    assert (
        f"{labels.name}: expected a complete gzip file"
        in desk.type("drop", "checked", "mnist/checked", expect=1).stderr
    )
    assert desk.type("show", "mnist/checked", expect=3).returncode == 3


def test_a_drop_tells_its_run(desk: Desk, first: dict[str, Any]) -> None:
    """Without --follow too, `drop` waits for the run's name; dropping the same content again names the earlier run."""
    assert first["run"] in desk.runs()
    assert (len(first["added"]), first["changed"], first["gone"], first["generation"]) == (5, [], [], 1)
    again = desk.ask("drop", "digits", "mnist/v")
    assert (again["run"], again["trained_before"], again["files"]) == (first["run"], True, 0)
    assert "already has this content" in desk.type("drop", "digits", "mnist/v", "--dry-run").stderr


def test_two_folders_do_not_become_one_unasked(desk: Desk, first: dict[str, Any]) -> None:
    """Without a terminal, a folder that lacks files of the drop is refused; --new or --delete decides."""
    other = desk.folder / "other"
    shutil.copytree(desk.folder / "digits", other)
    (other / "job.yaml").unlink()
    (other / "notes.txt").write_text("mine")
    assert "--merge keeps both" in desk.type("drop", "other", "mnist/v", expect=1).stderr
    assert desk.ask("data", "diff", "mnist/v", "mnist/v@now")["same"] == 5

    new = desk.ask("drop", "other", "mnist/v", "--new")
    assert (new["drop"], new["generation"]) == ("mnist/v-2", 1)
    made = desk.ask("drop", "other", "mnist/v", "--delete")
    assert (made["added"], made["gone"], made["deleted"], made["generation"]) == (["notes.txt"], ["job.yaml"], 1, 2)
    for run in (new["run"], made["run"]):
        desk.type("cancel", run)


def test_versions_are_listed_and_compared(desk: Desk, first: dict[str, Any]) -> None:
    """`data log` lists each generation with its run, `data diff` compares two, and `show` names a run's generation."""
    log = desk.ask("data", "log", "mnist/v")
    assert [row["number"] for row in log] == [2, 1]
    assert log[1]["run"] == first["run"]
    found = desk.ask("data", "diff", first["run"], "mnist/v@2")
    assert [file["path"] for file in found["added"]["files"] + found["gone"]["files"]] == ["notes.txt", "job.yaml"]
    assert desk.ask("show", log[0]["run"])["generation"] == 2
    assert "generation 2" in desk.type("show", log[0]["run"]).stdout
    assert "it has: 2, 1" in desk.type("data", "files", "mnist/v@9", expect=3).stderr


def test_the_same_content_is_trained_again_when_asked(desk: Desk, first: dict[str, Any]) -> None:
    """Returning to the first content gives its run; --again makes another run, of the newest generation."""
    back = desk.ask("drop", "digits", "mnist/v", "--delete")
    assert (back["run"], back["generation"], back["trained_before"]) == (first["run"], 3, True)
    again = desk.ask("drop", "digits", "mnist/v", "--again", "--follow")
    assert (again["state"], again["retry_of"], again["generation"]) == ("completed", first["run"], 3)


def test_a_removed_run_frees_its_space(desk: Desk, first: dict[str, Any]) -> None:
    """`rm` deletes a run and a drop after confirmation, their record stays, and `du` shrinks."""
    run = desk.ask("drop", "trained", "mnist/gone", "--follow")["run"]
    desk.type("drop", "trained", "mnist/gone", "--dry-run")
    before = desk.ask("du")
    assert run in {row["name"] for row in before["holders"] if row["kind"] == "checkpoints"}
    assert "--yes" in desk.type("rm", run, expect=1).stderr
    desk.type("rm", run, "mnist/gone", "--yes")
    wait_for(lambda: all(row["done_at"] for row in desk.ask("du", "--log")), 60, "both to be gone", 0.3)

    after = desk.ask("du")
    assert after["complete"]
    assert after["kinds"].get("checkpoints", 0) < before["kinds"]["checkpoints"]
    assert not {row["name"] for row in after["holders"] if row["bytes"] > 4096} & {run, "mnist/gone"}
    assert desk.ask("show", run)["removed_at"]
    assert run not in desk.runs()
    assert "were removed" in desk.type("fetch", run, expect=3).stderr
    assert "its files were deleted" in desk.type("show", run).stdout
    assert desk.type("show", "mnist/gone", expect=3).returncode == 3


def test_a_single_archive_keeps_its_extension(desk: Desk, first: dict[str, Any]) -> None:
    """An archive dropped under a name without extension keeps its extension in storage, and becomes a run."""
    file = desk.folder / "all.tar.gz"
    with tarfile.open(file, "w:gz") as archive:
        for path in sorted(Path(desk.folder / "digits").iterdir()):
            archive.add(path, path.name)
    told = desk.ask("drop", "all.tar.gz", "mnist/small")
    assert told["drop"] == "mnist/small.tar.gz"
    desk.type("cancel", told["run"])


def test_a_follow_knows_no_older_verdict(desk: Desk, first: dict[str, Any]) -> None:
    """After a rejected drop is repaired, the follow reports the new run and not the old rejection."""
    with ContainerClient.from_connection_string(desk.cloud.connection_string, "drops") as drops:
        drops.upload_blob("mnist/m/_SUCCESS", b"")
    wait_for(lambda: _state(desk, "mnist/m") == "rejected", 60, "the empty drop to be rejected", 0.2)
    desk.type("cancel", desk.ask("drop", "digits", "mnist/m")["run"])


def _state(desk: Desk, drop: str) -> str:
    found = (row["state"] for row in httpx.get(f"{desk.cloud.api}/drops", timeout=30).json() if row["drop"] == drop)
    return str(next(found, ""))

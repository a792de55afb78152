"""Damaged checkpoints and full disks: which checkpoints are skipped, and what the log reports."""

from __future__ import annotations

import resource
from collections.abc import Callable
from pathlib import Path
from typing import Any

import checkpoint
import pytest
from checkpoint import Checkpoints
from torch import nn

from tests.trainers.learner import ALONE, Learner, inside, names, restored, saved


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2 :] = bytes(len(content) - len(content) // 2)
    path.write_bytes(content)


DAMAGES: list[tuple[Callable[[Path], Any], str]] = [
    (lambda folder: (folder / "complete.json").unlink(), "it has no complete.json, so it was never finished"),
    (lambda folder: cut(folder / "__0_0.distcp"), "bytes, "),
    (lambda folder: (folder / "__0_0.distcp").unlink(), "its file __0_0.distcp is missing"),
    (lambda folder: (folder / ".metadata").unlink(), "its file .metadata is missing"),
    (lambda folder: (folder / "complete.json").write_text('{"facts": {"step"'), "its complete.json is cut off"),
    (lambda folder: (folder / "complete.json").write_text("[]"), "its complete.json is cut off, or is not one"),
    (lambda folder: one_bit(folder / "__0_0.distcp"), "its file __0_0.distcp was changed after it was written"),
    (lambda folder: hole(folder / "__0_0.distcp"), "its file __0_0.distcp was changed after it was written"),
    (lambda folder: one_bit(folder / ".metadata"), "its file .metadata was changed after it was written"),
]


def one_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def hole(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[:4096] = bytes(min(4096, len(content)))
    path.write_bytes(content)


@pytest.mark.parametrize(("damage", "says"), DAMAGES, ids=[says for _, says in DAMAGES])
def test_a_broken_one_is_passed_over(
    alone: None, tmp_path: Path, capsys: pytest.CaptureFixture[str], damage: Callable[[Path], None], says: str
) -> None:
    """If the newest checkpoint is incomplete or has one wrong bit, the log gives the reason, and the previous one
    is loaded; the next save is newer than both."""
    numbers = saved(tmp_path, 2)
    damage(tmp_path / "000002-step-2")
    facts, again = restored(tmp_path)
    assert facts
    assert facts["step"] == 1
    assert again == numbers[0]
    told = [line for line in capsys.readouterr().out.splitlines() if line.startswith("checkpoint 000002-step-2: ")]
    assert len(told) == 1
    assert says in told[0]
    assert told[0].endswith("; it is skipped")

    def go_on() -> None:
        learner = Learner()
        checkpoints = Checkpoints(tmp_path, ALONE)
        checkpoints.restore(learner.state)
        learner.step()
        checkpoints.save(learner.state, {"epoch": 1, "samples": 8, "step": 2})
        checkpoints.finish()

    inside(go_on)
    assert checkpoint.verified(tmp_path / "000003-step-2")


def old_view(path: Path) -> None:
    """Make the folder look as on a mount that saw the file when it was half written, and that does not look again."""
    cut(path / "__0_0.distcp")
    (path.parent / checkpoint.NEWEST).unlink()


@pytest.mark.parametrize(
    "damage", [lambda path: flip(path / "__0_0.distcp"), lambda path: (path / "complete.json").unlink(), old_view]
)
def test_none_that_loads_is_an_error(alone: None, tmp_path: Path, damage: Callable[[Path], None]) -> None:
    """If a complete checkpoint existed and none can be read, the training ends; it never starts over silently."""
    saved(tmp_path)
    damage(tmp_path / "000001-step-1")
    with pytest.raises(checkpoint.CheckpointError, match="no complete checkpoint could be loaded; the newest: 000001-"):
        restored(tmp_path)


def test_a_first_save_that_was_never_finished_is_told(
    alone: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """If no checkpoint was ever complete, the training starts at its first step, and logs this."""
    (tmp_path / "000001-step-1").mkdir()
    assert restored(tmp_path) == (None, None)
    assert "none of 1 checkpoints was ever complete; the training starts at its first step" in capsys.readouterr().out


def test_a_disk_that_is_full_or_read_only_is_told(
    alone: None, small_disk: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """A save without disk space or permission is logged with this reason, and leaves no file behind; the training
    continues, and later saves succeed again."""
    folder = small_disk.path / "checkpoints"

    def save() -> None:
        learner, checkpoints = Learner(), Checkpoints(folder, ALONE)

        def once(step: int) -> str:
            learner.step()
            checkpoints.save(learner.state, {"epoch": 1, "samples": 0, "step": step})
            checkpoints.finish()
            return capsys.readouterr().out

        assert once(1) == ""
        small_disk.fill()
        assert f"a checkpoint could not be written to {folder}: there is no room left ([Errno 28]" in once(2)
        assert names(folder) == ["000001-step-1"]
        small_disk.empty()
        assert once(3) == f"checkpoints can be written to {folder} again\n"
        small_disk.remount("ro")
        assert f"a checkpoint could not be written to {folder}: the folder is mounted read-only" in once(4)
        small_disk.remount("rw")
        assert once(5) == f"checkpoints can be written to {folder} again\n"

    inside(save)
    facts, _ = restored(folder)
    assert facts
    assert facts["step"] == 5


def test_a_limit_on_files_is_told(alone: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An enforced quota (here: the maximum file size) is logged, and the training continues."""

    def save() -> None:
        model = nn.Linear(1024, 512)
        checkpoints = Checkpoints(tmp_path, ALONE)
        for step, limit in ((1, 2**20), (2, resource.RLIM_INFINITY)):
            before = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(
                resource.RLIMIT_FSIZE, (limit if before[1] == resource.RLIM_INFINITY else before[1], before[1])
            )
            try:
                checkpoints.save({"model": model}, {"epoch": 1, "samples": 0, "step": step})
                checkpoints.finish()
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, before)

    inside(save)
    told = capsys.readouterr().out
    assert "a file may not become that large" in told
    assert "can be written to" in told
    assert names(tmp_path) == ["000002-step-2"]


def test_a_failed_save_is_told_and_the_training_goes_on(
    alone: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each failed save is a line in the log, even the last one; the next successful save is logged too."""
    folder = tmp_path / "checkpoints"
    folder.touch()  # a file where a folder should be

    def save() -> None:
        learner, checkpoints = Learner(), Checkpoints(folder, ALONE)
        for step in (1, 2):
            checkpoints.save(learner.state, {"epoch": 1, "samples": 0, "step": step})
            checkpoints.finish()
        folder.unlink()
        for step in (3, 4):
            checkpoints.save(learner.state, {"epoch": 1, "samples": 0, "step": step})
        checkpoints.finish()

    inside(save)
    told = capsys.readouterr().out
    assert told.count(f"a checkpoint could not be written to {folder}: ") == 2
    assert told.count("the training continues without it") == 2
    assert told.count(f"checkpoints can be written to {folder} again") == 1
    assert names(folder) == ["000003-step-3", "000004-step-4"]

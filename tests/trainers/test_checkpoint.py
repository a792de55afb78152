"""Checkpoints: complete or absent, found after any crash, and readable by any number of processes."""

from __future__ import annotations

import argparse
import shutil
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import checkpoint
import dist
import pytest
import torch
from checkpoint import Checkpoints, Position
from files import DataError
from torch import nn

from tests.trainers.learner import ALONE, Learner, inside, names, restored, saved


def test_everything_comes_back(alone: None, tmp_path: Path) -> None:
    """Weights, momentum, schedule and the trainer's facts are restored as saved, with the world size added."""
    numbers = saved(tmp_path / "new")
    facts, again = restored(tmp_path / "new")
    assert again == numbers[0]
    assert facts == {"epoch": 1, "samples": 4, "step": 1, "note": "of the trainer", "world_size": 1}
    assert Position.of(facts) == Position(1, 4, 1)


def test_random_numbers_go_on(alone: None, tmp_path: Path) -> None:
    """After a restore, PyTorch's random numbers continue from the moment of the save."""
    saved(tmp_path)
    expected = torch.rand(3)
    torch.manual_seed(99)

    def draw() -> torch.Tensor:
        Checkpoints(tmp_path, ALONE).restore(Learner().state)
        return torch.rand(3)

    assert torch.equal(inside(draw), expected)


def test_a_checkpoint_is_a_copy(alone: None, tmp_path: Path) -> None:
    """Steps made while the thread still writes do not change the checkpoint."""

    def save() -> list[Any]:
        learner = Learner()
        checkpoints = Checkpoints(tmp_path, ALONE)
        learner.step()
        before = learner.numbers()
        checkpoints.save(learner.state, {"epoch": 1, "samples": 4, "step": 1})
        learner.step()
        checkpoints.finish()
        return before

    before = inside(save)
    assert restored(tmp_path)[1] == before


def test_the_next_step_waits_for_the_copy(alone: None, tmp_path: Path) -> None:
    """A copy that the thread has not begun yet still gets the state of the save: the optimizer's next step waits,
    and so does a later team's `restore`. Batch normalisation's statistics, which forward changes, are copied at
    once."""
    at_work, go = threading.Event(), threading.Event()

    def save() -> tuple[list[Any], list[Any]]:
        learner = Learner()
        learner.model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))  # type: ignore[assignment]
        learner.optimizer = torch.optim.SGD(learner.model.parameters(), 0.1, momentum=0.9)
        checkpoints = Checkpoints(tmp_path, ALONE)
        learner.model(torch.rand(4, 3)).sum().backward()
        learner.optimizer.step()
        before = [value.tolist() for value in learner.model.state_dict().values()]
        checkpoints._thread.submit(at_work.set)
        checkpoints._thread.submit(go.wait)
        checkpoints.save(
            {"model": learner.model, "optimizer": learner.optimizer}, {"epoch": 1, "samples": 4, "step": 1}
        )
        at_work.wait()
        learner.model(torch.rand(4, 3)).sum().backward()
        threading.Timer(0.2, go.set).start()
        learner.optimizer.step()
        checkpoints.finish()
        model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
        optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
        Checkpoints(tmp_path, ALONE).restore({"model": model, "optimizer": optimizer})
        return before, [value.tolist() for value in model.state_dict().values()]

    before, again = inside(save)
    assert again == before


def test_old_ones_are_pruned(alone: None, tmp_path: Path) -> None:
    """The newest `keep` complete checkpoints stay; older ones, and older remains of a crash, are removed."""
    (tmp_path / "000001-step-99").mkdir(parents=True)
    (tmp_path / "notes").mkdir()
    saved(tmp_path, 1)
    assert names(tmp_path) == ["000001-step-1", "000001-step-99", "notes"]  # not older than the only whole one
    shutil.rmtree(tmp_path / "000001-step-1")
    (tmp_path / checkpoint.NEWEST).unlink()

    def go_on() -> None:
        learner = Learner()
        checkpoints = Checkpoints(tmp_path, ALONE, keep=2)
        assert checkpoints.restore(learner.state) is None
        for step in range(1, 5):
            learner.step()
            checkpoints.save(learner.state, {"epoch": 1, "samples": 4 * step, "step": step})
        checkpoints.finish()

    inside(go_on)
    assert names(tmp_path) == ["000004-step-3", "000005-step-4", "notes"]


def test_a_later_team_is_newer(alone: None, tmp_path: Path) -> None:
    """A checkpoint of a node that was left behind is older than one of the next team, whatever its number."""

    def save(number: int, team: int, step: int) -> None:
        checkpoints = Checkpoints(tmp_path, replace(ALONE, round=team))
        checkpoints._number = number
        checkpoints.save(Learner().state, {"epoch": 1, "samples": 0, "step": step})
        checkpoints.finish()

    inside(lambda: save(1, 2, 20))
    inside(lambda: save(8, 1, 90))
    facts, _ = restored(tmp_path)
    assert facts
    assert facts["step"] == 20


def test_another_model_is_an_error(alone: None, tmp_path: Path) -> None:
    """A checkpoint of a model with another shape is not loaded, and the message gives the reason."""
    saved(tmp_path)

    def restore() -> None:
        Checkpoints(tmp_path, ALONE).restore({"model": nn.Linear(3, 5)})

    with pytest.raises(checkpoint.CheckpointError, match=r"no complete checkpoint could be loaded.*[Ss]ize"):
        inside(restore)


def test_other_settings_are_refused(alone: None, tmp_path: Path) -> None:
    """A checkpoint with another value of a fixed setting is refused; the error names both values, and the remedy."""

    def save() -> None:
        checkpoints = Checkpoints(tmp_path, ALONE, fixed={"batch_size": 64, "lr": 0.1})
        checkpoints.save(Learner().state, {"epoch": 1, "samples": 4, "step": 1})
        checkpoints.finish()

    def restore() -> None:
        Checkpoints(tmp_path, ALONE, fixed={"batch_size": 128, "lr": 0.1}).restore(Learner().state)

    inside(save)
    words = "expected checkpoints with batch_size 128, found batch_size 64 in 000001-step-1; give the settings"
    with pytest.raises(DataError, match=words):
        inside(restore)


def test_without_a_folder_nothing_happens(alone: None, tmp_path: Path) -> None:
    """Without --checkpoint-dir every method is a no-op; before the first step nothing is saved."""

    def call(folder: Path | None, step: int) -> dict[str, Any] | None:
        checkpoints = Checkpoints(folder, ALONE, every=1)
        assert checkpoints.due(1, dist.StopRequest()) is bool(folder)
        checkpoints.save(Learner().state, {"epoch": 1, "samples": 0, "step": step})
        checkpoints.finish()
        return checkpoints.restore(Learner().state)

    assert inside(lambda: call(None, 5)) is None
    assert inside(lambda: call(tmp_path, 0)) is None
    assert not names(tmp_path)


@pytest.mark.parametrize(("text", "steps"), [("epoch", 0), ("25", 25), ("0", None), ("often", None)])
def test_the_interval_is_steps_or_epoch(text: str, steps: int | None, capsys: pytest.CaptureFixture[str]) -> None:
    """--checkpoint-every takes a number of steps from 1, or `epoch`; other values are refused by name."""
    parser = argparse.ArgumentParser()
    checkpoint.add_arguments(parser)
    if steps is None:
        with pytest.raises(SystemExit, match="2"):
            parser.parse_args(["--checkpoint-every", text])
        assert f"must be a number of steps, at least 1, or epoch, not '{text}'" in capsys.readouterr().err
    else:
        assert parser.parse_args(["--checkpoint-every", text]).checkpoint_every == steps


def test_dice_are_fixed_by_their_numbers() -> None:
    """The same numbers give the same random values; another number or another order gives other values."""
    throws = [torch.randperm(1000, generator=checkpoint.dice(*n)).tolist() for n in ((1, 2), (1, 2), (2, 1), (12,))]
    assert throws[0] == throws[1]
    assert throws[1] != throws[2] != throws[3] != throws[0]

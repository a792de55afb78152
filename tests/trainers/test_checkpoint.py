"""Checkpoints: whole or not there, found after any crash, and read by any number of processes."""

from __future__ import annotations

import argparse
import resource
import shutil
import threading
from collections import Counter
from collections.abc import Callable
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

from emulators.process import wait_for
from tests.trainers import launch as run

ALONE = dist.Place(rank=0, world_size=1, url="env://", backend="gloo")
COUNTING = str(Path(__file__).with_name("counting.py"))
STEPS = 8  # an epoch of counting.py: 30 samples, 4 a step


class Learner:
    """A model with all that belongs to it. Each `step` changes every part."""

    def __init__(self) -> None:
        self.model = nn.Linear(3, 2)
        self.optimizer = torch.optim.SGD(self.model.parameters(), 0.1, momentum=0.9)
        self.schedule = torch.optim.lr_scheduler.StepLR(self.optimizer, 1, 0.5)

    @property
    def state(self) -> dict[str, Any]:
        return {"model": self.model, "optimizer": self.optimizer, "schedule": self.schedule}

    def step(self) -> None:
        self.model(torch.rand(4, 3)).square().sum().backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.schedule.step()

    def numbers(self) -> list[Any]:
        momentum = [self.optimizer.state[p]["momentum_buffer"].tolist() for p in self.model.parameters()]
        return [self.model.weight.tolist(), momentum, self.schedule.get_last_lr()]


def inside(what: Callable[[], Any]) -> Any:
    """Call `what` inside the process group of one, and give its result or raise its error."""
    outcome: list[Any] = []

    def train(_device: torch.device, _stop: dist.StopRequest) -> str:
        try:
            outcome.append(what())
        except Exception as error:  # noqa: BLE001 (raised again outside, where the test looks at it)
            outcome.append(error)
        return ""

    dist.run(train, ALONE)
    if isinstance(outcome[0], Exception):
        raise outcome[0]
    return outcome[0]


def saved(folder: Path, count: int = 1, keep: int = 2) -> list[list[Any]]:
    """Save after each of `count` steps of a new learner; give its numbers after each."""

    def save() -> list[list[Any]]:
        learner, numbers = Learner(), []
        checkpoints = Checkpoints(folder, ALONE, keep=keep)
        for step in range(1, count + 1):
            learner.step()
            numbers.append(learner.numbers())
            checkpoints.save(learner.state, {"epoch": 1, "samples": 4 * step, "step": step, "note": "of the trainer"})
        checkpoints.finish()
        return numbers

    return inside(save)  # type: ignore[no-any-return]


def restored(folder: Path) -> tuple[dict[str, Any] | None, list[Any] | None]:
    """Facts and numbers that a new learner gets."""

    def restore() -> tuple[dict[str, Any] | None, list[Any] | None]:
        learner = Learner()
        facts = Checkpoints(folder, ALONE).restore(learner.state)
        return facts, learner.numbers() if facts else None

    return inside(restore)  # type: ignore[no-any-return]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != checkpoint.NEWEST)


def test_everything_comes_back(alone: None, tmp_path: Path) -> None:
    """Weights, momentum, schedule and the trainer's facts are as they were saved, with the world size added."""
    numbers = saved(tmp_path / "new")
    facts, again = restored(tmp_path / "new")
    assert again == numbers[0]
    assert facts == {"epoch": 1, "samples": 4, "step": 1, "note": "of the trainer", "world_size": 1}
    assert Position.of(facts) == Position(1, 4, 1)


def test_random_numbers_go_on(alone: None, tmp_path: Path) -> None:
    """After a restore PyTorch's random numbers continue where they were at the save."""
    saved(tmp_path)
    expected = torch.rand(3)
    torch.manual_seed(99)

    def draw() -> torch.Tensor:
        Checkpoints(tmp_path, ALONE).restore(Learner().state)
        return torch.rand(3)

    assert torch.equal(inside(draw), expected)


def test_a_checkpoint_is_a_copy(alone: None, tmp_path: Path) -> None:
    """Steps taken while the thread still writes do not get into the checkpoint."""

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
    """A copy that the thread has not begun yet still gets the state of the save: the optimizer's next step waits, a
    later team's `restore` does, and batch normalisation's statistics, which forward changes, are copied at once."""
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
    """The newest `keep` complete ones stay; older ones, and what a crash left before them, are removed."""
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
    """Where the newest is half written or has one wrong bit, the log says what is wrong with it, and the one before is
    taken; the next save is newer than both."""
    numbers = saved(tmp_path, 2)
    damage(tmp_path / "000002-step-2")
    facts, again = restored(tmp_path)
    assert facts
    assert facts["step"] == 1
    assert again == numbers[0]
    told = [line for line in capsys.readouterr().out.splitlines() if line.startswith("checkpoint 000002-step-2: ")]
    assert len(told) == 1
    assert says in told[0]
    assert told[0].endswith("; it is passed over")

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
    """As a mount shows it that saw the file when it was half written, and looks at neither again."""
    cut(path / "__0_0.distcp")
    (path.parent / checkpoint.NEWEST).unlink()


@pytest.mark.parametrize(
    "damage", [lambda path: flip(path / "__0_0.distcp"), lambda path: (path / "complete.json").unlink(), old_view]
)
def test_none_that_loads_is_an_error(alone: None, tmp_path: Path, damage: Callable[[Path], None]) -> None:
    """Where a checkpoint was complete once and none can be read the training ends; it never starts over in silence."""
    saved(tmp_path)
    damage(tmp_path / "000001-step-1")
    with pytest.raises(checkpoint.CheckpointError, match="no complete checkpoint could be loaded; the newest: 000001-"):
        restored(tmp_path)


def test_a_first_save_that_was_never_finished_is_told(
    alone: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where no checkpoint was ever complete the training starts at its first step, and says so."""
    (tmp_path / "000001-step-1").mkdir()
    assert restored(tmp_path) == (None, None)
    assert "none of 1 checkpoints was ever complete; the training starts at its first step" in capsys.readouterr().out


def test_a_later_team_is_newer(alone: None, tmp_path: Path) -> None:
    """What a node writes that was left behind is older than what the team after it wrote, whatever its number."""

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


def test_a_disk_that_is_full_or_read_only_is_told(
    alone: None, small_disk: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    """A save for which there is no room, or that may not be written, is told with that reason, and leaves nothing
    behind; the training goes on, and what can be written again is."""
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
    """A quota that the system enforces (here: how large a file may become) is told, and the training goes on."""

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


def test_another_model_is_an_error(alone: None, tmp_path: Path) -> None:
    """A checkpoint of a model of another shape is not loaded, and the message has the reason."""
    saved(tmp_path)

    def restore() -> None:
        Checkpoints(tmp_path, ALONE).restore({"model": nn.Linear(3, 5)})

    with pytest.raises(checkpoint.CheckpointError, match=r"no complete checkpoint could be loaded.*[Ss]ize"):
        inside(restore)


def test_other_settings_are_refused(alone: None, tmp_path: Path) -> None:
    """A checkpoint made with another value of a fixed setting is refused; the error names both, and the way out."""

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
    """Without --checkpoint-dir each method may be called and does nothing; before the first step nothing is saved."""

    def call(folder: Path | None, step: int) -> dict[str, Any] | None:
        checkpoints = Checkpoints(folder, ALONE, every=1)
        assert checkpoints.due(1, dist.StopRequest()) is bool(folder)
        checkpoints.save(Learner().state, {"epoch": 1, "samples": 0, "step": step})
        checkpoints.finish()
        return checkpoints.restore(Learner().state)

    assert inside(lambda: call(None, 5)) is None
    assert inside(lambda: call(tmp_path, 0)) is None
    assert not names(tmp_path)


def test_a_failed_save_is_told_and_the_training_goes_on(
    alone: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each save that fails is a line in the log, the last one too; once one works again, that is told."""
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
    assert told.count("the training goes on without it") == 2
    assert told.count(f"checkpoints can be written to {folder} again") == 1
    assert names(folder) == ["000003-step-3", "000004-step-4"]


@pytest.mark.parametrize(("text", "steps"), [("epoch", 0), ("25", 25), ("0", None), ("often", None)])
def test_the_interval_is_steps_or_epoch(text: str, steps: int | None, capsys: pytest.CaptureFixture[str]) -> None:
    """--checkpoint-every takes a number of steps from 1, or `epoch`; anything else is refused by name."""
    parser = argparse.ArgumentParser()
    checkpoint.add_arguments(parser)
    if steps is None:
        with pytest.raises(SystemExit, match="2"):
            parser.parse_args(["--checkpoint-every", text])
        assert f"must be a number of steps, at least 1, or epoch, not '{text}'" in capsys.readouterr().err
    else:
        assert parser.parse_args(["--checkpoint-every", text]).checkpoint_every == steps


def test_dice_are_fixed_by_their_numbers() -> None:
    """The same numbers throw the same; one that differs, also in its place, throws something else."""
    throws = [torch.randperm(1000, generator=checkpoint.dice(*n)).tolist() for n in ((1, 2), (1, 2), (2, 1), (12,))]
    assert throws[0] == throws[1]
    assert throws[1] != throws[2] != throws[3] != throws[0]


# --- more than one process -------------------------------------------------------------------------------------------


def seen(folder: Path) -> list[tuple[int, int, list[int]]]:
    """(step, epoch, samples) of each row that counting.py wrote."""
    rows = []
    for row in run.metrics(folder):
        digits = str(row["seen"])[1:]
        rows.append((row["step"], row["epoch"], [int(digits[i : i + 2]) for i in range(0, len(digits), 2)]))
    return rows


def assert_each_sample_once(folder: Path, epochs: int) -> None:
    """Each step has one row, and each epoch each of the 30 samples once."""
    rows = seen(folder)
    assert [step for step, _, _ in rows] == list(range(1, STEPS * epochs + 1))
    for epoch in range(1, epochs + 1):
        assert Counter(n for _, e, numbers in rows if e == epoch for n in numbers) == Counter(range(30))


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four epochs in one process."""
    folder = tmp_path_factory.mktemp("undisturbed")
    result = run.finish(run.fork([COUNTING, "--epochs", "4", "--checkpoint-dir", str(folder)], run.environment()))
    assert result.code == 0, result
    (folder / "last-line").write_text(result.out[-1])
    return folder


@pytest.mark.parametrize(("kind", "counts"), [([], (2, 1)), (["--fsdp2"], (1, 2))], ids=["ddp", "fsdp2"])
def test_another_number_of_processes_goes_on(
    tmp_path: Path, undisturbed: Path, kind: list[str], counts: tuple[int, int]
) -> None:
    """More or fewer processes that go on from others' checkpoint see the same samples and end with the same weights."""
    args = [*kind, "--checkpoint-dir", str(tmp_path)]
    for epochs, count in zip((1, 4), counts, strict=True):
        processes = run.start_ranks([*args, "--epochs", str(epochs)], count, COUNTING, by=run.fork)
        results = [run.finish(process) for process in processes]
        assert [result.code for result in results] == [0] * count, results
    assert_each_sample_once(tmp_path, 4)
    assert seen(tmp_path) == seen(undisturbed)
    sums = [
        [float(n) for n in line.split()[3:]] for line in (results[0].out[-1], (undisturbed / "last-line").read_text())
    ]
    assert sums[0] == pytest.approx(sums[1], abs=2e-4)


def test_after_kill_9_nothing_is_lost_or_done_twice(tmp_path: Path, undisturbed: Path) -> None:
    """A rank killed in an epoch under torchrun: the others end at once, saying so, all start again from the last
    checkpoint, and the rows are those of the undisturbed training, each once."""
    args = ["--epochs", "4", "--checkpoint-dir", str(tmp_path), "--checkpoint-every", "3", "--kill-at", "13"]
    result = run.torchrun(args, 2, COUNTING, ["--max-restarts", "1"], by=run.fork)
    assert result.code == 0, result
    assert any(line.startswith("resumed from ") for line in result.out)
    assert seen(tmp_path) == seen(undisturbed)
    rates = [[row["learning_rate"] for row in run.metrics(folder)] for folder in (tmp_path, undisturbed)]
    assert rates[0] == pytest.approx(rates[1])
    # Whichever comes first ends the survivor: its next exchange, which fails, or the SIGTERM that torchrun sends it.
    assert any(
        line.startswith(("rank 0: failed: ", "rank 0: stopped: got SIGTERM")) for line in result.out + result.err
    )


def test_sigterm_makes_a_last_checkpoint(tmp_path: Path) -> None:
    """SIGTERM to torchrun reaches each rank; all stop at the same step, and a checkpoint of that step is there."""
    folder = tmp_path / "checkpoints"
    process = run.start_torchrun(["--epochs", "100000", "--checkpoint-dir", str(folder)], 2, COUNTING, by=run.fork)
    try:
        metrics = folder / "metrics.jsonl"
        wait_for(lambda: metrics.exists() and metrics.stat().st_size, run.DEADLINE_SECONDS, "the first row")
        process.terminate()
        result = run.finish(process)
    finally:
        process.kill()
    assert sum(": stopped: rank " in line for line in result.err) == 2, result
    found = checkpoint.verified(sorted(folder.glob("0*"))[-1])
    assert found
    steps = found["facts"]["step"]
    assert [step for step, _, _ in seen(folder)][:steps] == list(range(1, steps + 1))
    assert found["facts"]["epoch"] == (steps // STEPS) + 1
    assert found["facts"]["samples"] == (steps % STEPS) * 4


def test_workers_end_with_their_launcher(tmp_path: Path) -> None:
    """When torchrun is killed, the kernel ends its workers, so that none stays behind in a group of the past."""
    process = run.start_torchrun(["--epochs", "100000", "--checkpoint-dir", str(tmp_path)], 1, COUNTING, by=run.fork)
    try:
        metrics = tmp_path / "metrics.jsonl"
        wait_for(lambda: metrics.exists() and metrics.stat().st_size, run.DEADLINE_SECONDS, "the first row")
        workers = run.children(process.pid)
        assert len(workers) == 1
    finally:
        process.kill()
        process.communicate()
    wait_for(lambda: not any(map(running, workers)), run.DEADLINE_SECONDS, "the workers' end")


def running(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False

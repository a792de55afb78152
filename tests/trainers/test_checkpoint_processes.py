"""Checkpoints of several processes: another number of processes can continue, and a kill leaves enough."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import checkpoint
import pytest

from emulators.process import wait_for
from tests.trainers import launch as run

COUNTING = str(Path(__file__).with_name("counting.py"))
STEPS = 8  # an epoch of counting.py: 30 samples, 4 a step


def seen(folder: Path) -> list[tuple[int, int, list[int]]]:
    """Return (step, epoch, samples) of each row that counting.py wrote."""
    rows = []
    for row in run.metrics(folder):
        digits = str(row["seen"])[1:]
        rows.append((row["step"], row["epoch"], [int(digits[i : i + 2]) for i in range(0, len(digits), 2)]))
    return rows


def assert_each_sample_once(folder: Path, epochs: int) -> None:
    """Check that each step has one row, and that each epoch has each of the 30 samples once."""
    rows = seen(folder)
    assert [step for step, _, _ in rows] == list(range(1, STEPS * epochs + 1))
    for epoch in range(1, epochs + 1):
        assert Counter(n for _, e, numbers in rows if e == epoch for n in numbers) == Counter(range(30))


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four epochs in one process, without interruption."""
    folder = tmp_path_factory.mktemp("undisturbed")
    result = run.finish(run.fork([COUNTING, "--epochs", "4", "--checkpoint-dir", str(folder)], run.environment()))
    assert result.code == 0, result
    (folder / "last-line").write_text(result.out[-1])
    return folder


@pytest.mark.parametrize(("kind", "counts"), [([], (2, 1)), (["--fsdp2"], (1, 2))], ids=["ddp", "fsdp2"])
def test_another_number_of_processes_goes_on(
    tmp_path: Path, undisturbed: Path, kind: list[str], counts: tuple[int, int]
) -> None:
    """More or fewer processes that continue from a checkpoint see the same samples and end with the same weights."""
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
    """After a rank is killed under torchrun, the others end at once with a message, all restart from the last
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
    """SIGTERM to torchrun reaches each rank; all stop at the same step, and save a checkpoint of this step."""
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
    """When torchrun is killed, the kernel ends its workers, so that none remains in an outdated group."""
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

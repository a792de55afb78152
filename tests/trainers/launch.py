"""Start a trainer in this process, in several processes, or under torchrun, and read its output."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.trainers import forked

ROOT = Path(__file__).resolve().parents[2]
TRAINERS = ROOT / "trainers"
Started = subprocess.Popen[str] | forked.Process
Starter = Callable[[list[str], dict[str, str]], Started]
DEADLINE_SECONDS = 300  # a loaded machine is slow; a hanging test is worse


@dataclass
class Result:
    """An ended process: the exit code, and the lines of standard output and standard error."""

    code: int
    out: list[str]
    err: list[str]


def environment(**extra: str) -> dict[str, str]:
    """Return this process's environment without variables that name a rank, with one thread per process."""
    ranks = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
    return {**{k: v for k, v in os.environ.items() if k not in ranks}, "OMP_NUM_THREADS": "1", **extra}


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def start(args: list[str], env: dict[str, str], cwd: Path = TRAINERS) -> subprocess.Popen[str]:
    argv = [sys.executable, *args]
    return subprocess.Popen(argv, cwd=cwd, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def fork(args: list[str], env: dict[str, str], cwd: Path = TRAINERS) -> forked.Process:
    """Do the same as `start`, by a fork of a process that has imported PyTorch."""
    folder = Path(tempfile.mkdtemp(prefix="forked"))
    return forked.Process(forked.Program(args, env, cwd, folder / "out", folder / "err"))


def finish(process: Started) -> Result:
    try:
        out, err = process.communicate(timeout=DEADLINE_SECONDS)
    finally:
        process.kill()
    return Result(int(process.returncode or 0), out.splitlines(), err.splitlines())


def start_ranks(args: list[str], count: int, script: str = "mnist/train.py", by: Starter = fork) -> Sequence[Started]:
    """Start `count` processes of a trainer with the environment that Azure ML sets."""
    shared = {"WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    return [by([script, *args], environment(**shared, RANK=str(rank))) for rank in range(count)]


def start_torchrun(
    args: list[str],
    processes: int,
    script: str = "mnist/train.py",
    options: Sequence[str] = (),
    by: Starter = start,
) -> Started:
    """Start a trainer under torchrun, as in the README. `options` are torchrun's own options."""
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes), *options]
    return by([*launcher, script, *args], environment())


def torchrun(
    args: list[str],
    processes: int,
    script: str = "mnist/train.py",
    options: Sequence[str] = (),
    by: Starter = start,
) -> Result:
    """Run a trainer under torchrun to its end."""
    return finish(start_torchrun(args, processes, script, options, by))


def children(pid: int) -> list[int]:
    """Return the running child processes of this process, oldest first. Linux only."""
    found = Path(f"/proc/{pid}/task").glob("*/children")
    return sorted(int(child) for path in found for child in path.read_text().split())


def metrics(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]

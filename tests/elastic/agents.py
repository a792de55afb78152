"""Agents as processes, and what their workers did."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Self

from emulators.process import tail, wait_for
from tests.trainers.forked import Process, Program

ROOT = Path(__file__).resolve().parents[2]
EVERY = 5  # steps between checkpoints
CONF = "last_call_timeout=2"
DEADLINE_SECONDS = 120  # a loaded machine is slow; a hanging test is worse


@dataclass
class Agent:
    """A running agent. Its output goes to `log`."""

    process: subprocess.Popen[bytes] | Process
    log: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    def kill(self) -> None:
        """Send SIGKILL."""
        self.process.kill()
        self.process.wait()

    def end(self, timeout: float = DEADLINE_SECONDS) -> int:
        """Wait for the exit code."""
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"{self.log} did not end:\n{tail(self.log)}") from None

    def last_line(self) -> str:
        return self.log.read_text().splitlines()[-1]


def _afresh(prefix: Sequence[str], program: Program) -> subprocess.Popen[bytes]:
    """Start a program with exec, for another network (which a fork can't enter) or for a program that has to look
    for plugins again."""
    argv = [*prefix, sys.executable, *program.arguments]
    with program.out.open("wb") as out:
        return subprocess.Popen(argv, cwd=program.cwd, env=program.env, stdout=out, stderr=subprocess.STDOUT)


class Run:
    """An elastic run over a table: its agents, and the folder where its workers leave the checkpoint and the
    progress."""

    worker = "worker.py"

    def __init__(self, folder: Path, endpoint: str, run: str, nodes: str, **env: str) -> None:
        self.folder = folder
        self.progress_file = folder / "progress.jsonl"
        self.env = {
            **{key: value for key, value in os.environ.items() if not key.startswith(("PET_", "TORCHELASTIC_"))},
            "OMP_NUM_THREADS": "1",
            "PET_NNODES": nodes,
            "PET_RDZV_ENDPOINT": endpoint,
            "PET_RDZV_ID": run,
            "PET_MAX_RESTARTS": "20",
            "PYTHONPATH": str(ROOT / "trainers"),
            **env,
        }
        self.agents: list[Agent] = []

    def start(
        self,
        count: int = 1,
        prefix: Sequence[str] = (),
        launch: Sequence[str] = ("elastic.launch",),
        **env: str,
    ) -> list[Agent]:
        """Start agents as the control plane does: in trainers/, with everything but the script in the environment."""
        for _ in range(count):
            log = self.folder / f"agent{len(self.agents)}.log"
            script = str(Path(__file__).with_name(self.worker))
            argv = ["-m", *launch, script, str(self.folder), str(EVERY)]
            program = Program(argv, {**self.env, **env}, ROOT / "trainers", log)
            ours = not prefix and launch[0] == "elastic.launch"
            self.agents.append(Agent(Process(program) if ours else _afresh(prefix, program), log))
        return self.agents[-count:]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for agent in self.agents:
            agent.kill()

    def progress(self) -> list[Mapping[str, float]]:
        """Return the steps so far, without a last line that is still being written."""
        if not self.progress_file.exists():
            return []
        lines = self.progress_file.read_text().split("\n")[:-1]
        return [json.loads(line) for line in lines]

    def wait_for_steps(self, world: int, after: int = 0, steps: int = 1) -> list[Mapping[str, float]]:
        """Wait for `steps` steps of `world` processes after the first `after` lines of progress. Return all lines."""

        def there() -> list[Mapping[str, float]] | None:
            running, lines = self.alive(), self.progress()
            enough = sum(line["world"] == world for line in lines[after:]) >= steps
            if not enough and len(running) < world:
                raise TimeoutError(f"{len(running)} agents are left, too few for {steps} steps of {world} processes")
            return lines if enough else None

        try:
            return wait_for(there, DEADLINE_SECONDS, f"{steps} steps of {world} processes")
        except TimeoutError as error:
            logs = "\n".join(f"--- {agent.log.name}\n{tail(agent.log, 2000)}" for agent in self.agents)
            raise AssertionError(f"{error}; {self.progress()[-1:]}\n{logs}") from None

    def finish(self) -> list[int]:
        """Let the workers end, and return the exit codes of the remaining agents."""
        left = self.alive()
        (self.folder / "finish").touch()
        return [agent.end() for agent in left]

    def first(self) -> Agent:
        """Return the agent whose worker is rank 0. PyTorch orders nodes by address (here all are equal) and process
        id."""
        return min(self.alive(), key=lambda agent: agent.pid)

    def alive(self) -> list[Agent]:
        return [agent for agent in self.agents if agent.process.poll() is None]


class InPlace(Run):
    """A run whose agents keep their workers."""

    worker = "inplace.py"

    def __init__(self, folder: Path, endpoint: str, run: str, nodes: str, **env: str) -> None:
        super().__init__(folder, endpoint, run, nodes, **{"PET_RDZV_CONF": CONF, **env})

    def start(
        self,
        count: int = 1,
        prefix: Sequence[str] = (),
        launch: Sequence[str] = ("elastic.launch", "--in-place"),
        **env: str,
    ) -> list[Agent]:
        return super().start(count, prefix, launch, **env)

    def assert_no_step_lost(self) -> None:
        """Each step was made once by every process that saw it; the first process writes it down, unless it dies."""
        for earlier, later in pairwise(line["step"] for line in self.progress()):
            assert earlier < later <= earlier + 2, f"step {later} came after step {earlier}"

    def processes(self, lines: Sequence[object]) -> set[float]:
        return {line["process"] for line in lines}  # type: ignore[index]

"""Processes that train together, and the steps that they log."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from emulators.process import wait_for

ROOT = Path(__file__).resolve().parents[2]
PEERS = ROOT / "benchmarks" / "peers"
START_SECONDS = 600  # a loaded machine is slow

Line = dict[str, Any]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def lines(file: Path) -> list[Line]:
    """Return the lines logged so far, without a last line that is still being written."""
    return [json.loads(line) for line in file.read_text().split("\n")[:-1]] if file.exists() else []


class Crowd:
    """Processes that log their steps in one file. `{number}` in `argv` is replaced by the process's number."""

    def __init__(self, folder: Path, argv: Sequence[str], env: Mapping[str, str], count: int) -> None:
        self.file, self.events = folder / "steps", folder / "events"
        self._log = (folder / "log").open("wb")
        self._argv = argv
        self._env = {**os.environ, "OMP_NUM_THREADS": "1", "ELASTIC_EVENTS": str(self.events), **env}
        self._env["PYTHONPATH"] = os.pathsep.join([*filter(None, [env.get("PYTHONPATH")]), str(ROOT / "trainers")])
        self.processes: list[subprocess.Popen[bytes]] = []
        for _ in range(count):
            self.add()

    def add(self) -> None:
        """Start one more process."""
        argv = [part.replace("{number}", str(len(self.processes))) for part in self._argv]
        place = {"cwd": ROOT / "trainers", "env": self._env}
        self.processes.append(subprocess.Popen(argv, stdout=self._log, stderr=subprocess.STDOUT, **place))  # type: ignore[call-overload]

    def alive(self) -> list[subprocess.Popen[bytes]]:
        return [process for process in self.processes if process.poll() is None]

    def said(self) -> str:
        """Return the end of the processes' common output."""
        return Path(self._log.name).read_text(errors="replace")[-3000:]

    def wait(self, world: int, after: float = 0.0, seconds: float = START_SECONDS) -> None:
        """Wait until `world` processes work together. Raises RuntimeError if fewer processes are alive, and
        TimeoutError."""

        def there() -> bool:
            if len(self.alive()) < world:
                raise RuntimeError(f"too few are left: {self.said()}")
            steps = (line for line in lines(self.file) if line["world"] == world and line["time"] > after)
            return len({line["process"] for line in steps}) >= world

        wait_for(there, seconds, f"{world} at work", every=0.1)

    def again(self, world: int, began: float) -> float:
        """Return the seconds until each of `world` processes has made its first common step."""
        first: dict[int, float] = {}
        for line in lines(self.file):
            if line["world"] == world and line["time"] > began:
                first.setdefault(line["process"], line["time"])
        return max(first.values()) - began

    def by_rank(self) -> list[subprocess.Popen[bytes]]:
        """Return the living processes in the order of their logged ranks."""
        ranks = {e["process"]: e["rank"] for e in lines(self.events) if e["what"] == "node joined"}
        return sorted(self.alive(), key=lambda process: ranks.get(process.pid, 0))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        self.file.with_suffix(".end").touch()
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            process.wait()
        self._log.close()


def installed(folder: Path) -> dict[str, str]:
    """Return the environment in which torchrun finds our backend like that of an installed package."""
    package = folder / "elastic-0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: elastic\nVersion: 0\n")
    (package / "entry_points.txt").write_text("[torchrun.handlers]\nazure-table = elastic.plugin:plugin\n")
    return {"PYTHONPATH": str(folder)}


def in_place(folder: Path, url: str, count: int, script: Path = PEERS / "elastic_steps.py", most: int = 0) -> Crowd:
    """Start `count` agents of one run whose workers keep running through changes."""
    env = {"PET_RDZV_ENDPOINT": url, "PET_RDZV_ID": uuid.uuid4().hex, "PET_NNODES": f"1:{most or count}"}
    env |= {"PET_LOCAL_ADDR": "127.0.0.1"}
    argv = [sys.executable, "-m", "elastic.launch", "--in-place", str(script), str(folder / "steps")]
    return Crowd(folder, argv, env, count)

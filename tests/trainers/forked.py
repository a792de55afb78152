"""Programs as processes that need not import PyTorch again: forks of a server that has imported it.

A fork has its own pid, environment, folder and output, and runs its program as `python PROGRAM` does. Processes that
the program itself starts are ordinary processes.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import multiprocessing.process
import os
import runpy
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

PRELOADED = "tests.trainers.preloaded"
_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload([PRELOADED])


@dataclass(frozen=True)
class Program:
    """The arguments after `python`, the working folder, and the output files; `err` None: standard error goes to
    `out`."""

    arguments: Sequence[str]
    env: Mapping[str, str]
    cwd: Path
    out: Path
    err: Path | None = None


class Process:
    """A started program, with the parts of Popen's interface that tests use."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._process = _context.Process(target=_run, args=(program,), daemon=True)
        self._process.start()
        assert self._process.pid
        self.pid = self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
        return self._process.exitcode

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        self.wait(timeout)
        return self._program.out.read_text(), self._program.err.read_text() if self._program.err else ""

    def kill(self) -> None:
        self._process.kill()

    def terminate(self) -> None:
        self._process.terminate()

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)


def fork(target: Callable[..., None], *arguments: object) -> multiprocessing.process.BaseProcess:
    """Call a module's function in a fork, optionally with sockets."""
    process = _context.Process(target=target, args=arguments, daemon=True)
    process.start()
    return process


def _run(program: Program) -> None:
    """Run the program in the fork, and end the process."""
    multiprocessing.current_process()._config["daemon"] = False  # type: ignore[attr-defined]  # it may start others
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    for number, path in ((0, Path(os.devnull)), (1, program.out), (2, program.err or program.out)):
        file = os.open(path, flags | (os.O_APPEND if number == 2 else 0) if number else os.O_RDONLY, 0o644)
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    os.environ.update(program.env)
    os.chdir(program.cwd)
    sys.path[:0] = program.env.get("PYTHONPATH", "").split(os.pathsep)
    code = 1
    try:
        code = _become(list(program.arguments))
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _become(arguments: list[str]) -> int:
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments
        sys.path.insert(0, str(Path(arguments[0]).resolve().parent))
        runpy.run_path(arguments[0], run_name="__main__")
    return 0

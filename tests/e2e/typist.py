"""Runs commands without starting Python for each: a process that has imported the command line forks once per command.

A command has the same code, descriptors, environment and exit status as `python -m cli`, without its second of imports.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).resolve().parents[2]
LATER = ("pydantic", "httpcore", "azure.identity", "azure.storage.blob")  # what commands import when they need it


def run(argv: Sequence[str], env: Mapping[str, str], seconds: float = 100) -> subprocess.CompletedProcess[str]:
    """Run `python -m cli ARGV` in the repository's root. Raises TimeoutExpired."""
    with tempfile.NamedTemporaryFile() as out, tempfile.NamedTemporaryFile() as err:
        ask = {"argv": list(argv), "env": dict(env), "out": out.name, "err": err.name, "seconds": seconds}
        status = _typist().type(json.dumps(ask))
        words = out.read().decode(), err.read().decode()
    if status == -signal.SIGALRM:
        raise subprocess.TimeoutExpired(list(argv), seconds, *words)
    return subprocess.CompletedProcess(list(argv), status, *words)


class _Typist:
    def __init__(self) -> None:
        command = [sys.executable, "-m", "tests.e2e.typist"]
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
        )
        atexit.register(self.close)

    def type(self, line: str) -> int:
        """The exit status; for a command that a signal ended, minus the signal's number."""
        assert self._process.stdin
        assert self._process.stdout
        with self._lock:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        assert answer, "the process that types has ended"
        status: int = json.loads(answer)
        return status

    def close(self) -> None:
        assert self._process.stdin
        self._process.communicate()  # the process ends with its input


@cache
def _typist() -> _Typist:
    return _Typist()


def _serve() -> None:
    from cli import commands

    commands.load()
    for name in LATER:
        import_module(name)
    gc.freeze()  # the pages of imported modules stay shared with the forks
    for line in sys.stdin:
        ask = json.loads(line)
        child = os.fork()
        if not child:
            _become(ask)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        sys.stdout.write(json.dumps(status) + "\n")
        sys.stdout.flush()


def _become(ask: dict[str, Any]) -> NoReturn:
    """Become the command, which SIGALRM ends if it takes too long."""
    signal.setitimer(signal.ITIMER_REAL, ask["seconds"])
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(os.open(ask["out"], os.O_WRONLY), 1)
    os.dup2(os.open(ask["err"], os.O_WRONLY), 2)
    os.environ.clear()
    os.environ.update(ask["env"])
    sys.argv = ["trainyard", *ask["argv"]]
    status = 1
    try:
        from cli.__main__ import main

        status = main()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001  # as Python does at the end of a program
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    _serve()

"""One rank of a job: a shell command in its own process group, with output in a log file."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from emulators.azureml.running import shell
from emulators.azureml.running.process_guard import Guard, signal_groups
from emulators.azureml.running.read_only import obeying
from emulators.process import IS_WINDOWS

TAIL_BYTES = 4000
DRAIN_SECONDS = 1.0  # to wait for a process that left its group and has the log open


@dataclass(frozen=True)
class Launch:
    """The command, folder and variables of a rank. Its standard output and error are appended to `log`."""

    command: str
    folder: Path
    environment: Mapping[str, str]
    log: Path


class RankProcess:
    """A running rank, made by `start`."""

    def __init__(self, process: asyncio.subprocess.Process, errors: ErrorCopy, guard: Guard) -> None:
        self._process = process
        self._errors = errors
        self._guard = guard
        self._ended = asyncio.create_task(self._end())

    @classmethod
    async def start(cls, launch: Launch, guard: Guard) -> RankProcess:
        """Start the command under a shell. Raises OSError if the shell or the folder is missing, or if the command
        or the environment is invalid for a process."""
        reading, writing = os.pipe()
        errors = ErrorCopy(reading, launch.log)
        try:
            with launch.log.open("ab", buffering=0) as out:
                process = await asyncio.create_subprocess_exec(
                    *obeying(),
                    *shell.argv(launch.command),
                    cwd=launch.folder,
                    env=dict(launch.environment),
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=out,
                    stderr=writing,
                    start_new_session=not IS_WINDOWS,
                )
        except ValueError as error:
            raise OSError(f"The job's process can't be started: {error}.") from error
        finally:
            os.close(writing)
        guard.watch(process.pid)
        return cls(process, errors, guard)

    @property
    def pid(self) -> int | None:
        """Return the process id of the rank's shell, or None once the rank has ended."""
        return None if self._ended.done() else self._process.pid

    @property
    def last_words(self) -> str:
        """Return the end of the rank's standard error."""
        return self._errors.tail.decode("utf-8", "replace").strip()

    async def wait(self) -> int:
        """Wait until the rank's log is complete and its process group has ended. Returns the exit status, or minus
        the number of the signal that ended the rank."""
        return await asyncio.shield(self._ended)

    async def stop(self, grace: float) -> None:
        """Stop the process group: SIGTERM, then SIGKILL after `grace` seconds. Returns when the group has ended. A
        second call does nothing more."""
        if not self._ended.done():
            self._signal(signal.SIGTERM)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(grace):
                    await self.wait()
                    return
            self._signal(signal.SIGTERM if IS_WINDOWS else signal.SIGKILL)
        await self.wait()

    def _signal(self, number: int) -> None:
        if not IS_WINDOWS:
            signal_groups([self._process.pid], number)
        elif self._process.returncode is None:
            self._process.terminate()

    async def _end(self) -> int:
        code = await self._process.wait()
        if not IS_WINDOWS:  # background processes end with the command, as with a node
            signal_groups([self._process.pid], signal.SIGKILL)
        self._guard.release(self._process.pid)
        await asyncio.to_thread(self._errors.join, DRAIN_SECONDS)
        return code


class ErrorCopy(threading.Thread):
    """Appends the bytes of a pipe to the log, and keeps the last bytes to explain a failure.

    This uses a thread instead of asyncio's pipes. With asyncio, a process counts as running until the last holder of
    its pipe has ended, which may be a background process that it started.
    """

    def __init__(self, pipe: int, log: Path) -> None:
        super().__init__(daemon=True)
        self.tail = b""
        self._pipe = pipe
        self._log = log
        self.start()

    def run(self) -> None:
        with open(self._pipe, "rb", buffering=0) as source, self._log.open("ab", buffering=0) as out:  # noqa: PTH123
            while piece := source.read(65536):
                out.write(piece)
                self.tail = (self.tail + piece)[-TAIL_BYTES:]


def free_ports(count: int) -> tuple[int, ...]:
    """Return distinct ports on which no process listens now."""
    with contextlib.ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return tuple(int(probe.getsockname()[1]) for probe in probes)

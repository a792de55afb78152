"""The host's side of the worker: start the process, call it, and restart it after it has ended."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

from emulators.host.errors import Refused
from emulators.host.worker import frames
from emulators.host.worker.backend import Indexed, Invocation, Outcome

log = logging.getLogger("host.worker")
SOURCE = Path(__file__).resolve().parents[3]  # where `-m` finds the package
MOST_DEATHS = 3  # within DEATHS_WITHIN seconds; after that Azure's host ends
DEATHS_WITHIN = 30 * 60.0


class Died(Exception):
    """The worker ended during a call."""


class WorkerProcess:
    """Loads one app, and calls its functions.

    `give_up` is called when the worker has ended too often. `logged` is called with the function's name, the level and
    the text of each record of a running invocation.
    """

    def __init__(
        self, app: Path, backend: str, give_up: Callable[[], None], logged: Callable[[str, int, str], None]
    ) -> None:
        self._argv = [sys.executable, "-X", "faulthandler", "-m", "emulators.host.worker", backend, str(app)]
        self._give_up, self._logged = give_up, logged
        self._deaths: list[float] = []
        self._starting: asyncio.Task[_Channel] | None = None
        self._closing = False

    async def start(self) -> list[Indexed]:
        """Start the process and load the app. Raises Refused, with the app's own error, if this fails."""
        self._starting = asyncio.create_task(self._started())
        return (await self._starting).indexed

    async def invoke(self, invocation: Invocation) -> Outcome:
        """Call the function. Every failure is in the outcome, including the end of the worker."""
        assert self._starting is not None
        try:
            channel = await asyncio.shield(self._starting)
            outcome: Outcome = await channel.call(invocation)
            return outcome
        except (Died, Refused) as exc:
            return Outcome(error=f"RuntimeError: {exc}")

    async def replace(self, invocation: str) -> None:
        """End the worker because of this invocation, and start another.

        Other invocations in the old worker get no answer and end at their own time limit, after which the worker is
        replaced again.
        """
        log.error("the worker starts again: invocation %s is past its time", invocation)
        assert self._starting is not None
        old, self._starting = self._starting, asyncio.create_task(self._started())
        with contextlib.suppress(Died, Refused):
            (await old).kill()

    async def close(self, seconds: float) -> None:
        """Stop the worker, and kill it after `seconds`."""
        self._closing = True
        if self._starting:
            with contextlib.suppress(Died, Refused):
                await (await self._starting).close(seconds)

    async def _started(self) -> _Channel:
        channel = await _Channel.open(self._argv, self._died, self._logged)
        try:
            await channel.load()
        except Refused:
            channel.kill()
            raise
        return channel

    def _died(self, status: int) -> None:
        if self._closing:
            return
        now = time.monotonic()
        self._deaths = [death for death in self._deaths if now - death < DEATHS_WITHIN] + [now]
        log.error("the worker ended with status %d (%d of %d)", status, len(self._deaths), MOST_DEATHS)
        if len(self._deaths) >= MOST_DEATHS:
            log.error("the worker ended too often: the host ends itself")
            self._give_up()
        self._starting = asyncio.create_task(self._started())


class _Channel:
    """One worker process, and its unanswered calls."""

    def __init__(self, process: Process, died: Callable[[int], None], logged: Callable[[str, int, str], None]) -> None:
        self.indexed: list[Indexed] = []
        self._process = process
        self._died, self._logged = died, logged
        self._numbers = count()
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._killed = False
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def open(
        cls, argv: list[str], died: Callable[[int], None], logged: Callable[[str, int, str], None]
    ) -> _Channel:
        process = await asyncio.create_subprocess_exec(*argv, stdin=PIPE, stdout=PIPE, cwd=SOURCE)
        return cls(process, died, logged)

    async def load(self) -> None:
        answer = await self.call(None)
        if isinstance(answer, Refused):
            raise answer
        self.indexed = answer

    async def call(self, invocation: Invocation | None) -> Any:
        """Send a call, and return the answer. Raises Died if the process ends before the answer."""
        if self._process.returncode is not None:
            raise Died(f"the worker ended with status {self._process.returncode}")
        assert self._process.stdin is not None
        number = next(self._numbers)
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            self._process.stdin.write(frames.packed((number, invocation)))
            return await answer
        finally:
            del self._waiting[number]

    def kill(self) -> None:
        """Kill the process without raising an error in the waiting calls."""
        self._killed = True
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    async def close(self, seconds: float) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            async with asyncio.timeout(seconds):
                await self._reading
        except TimeoutError:
            self.kill()
            await self._process.wait()

    async def _read(self) -> None:
        assert self._process.stdout is not None
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                size = frames.length(await self._process.stdout.readexactly(frames.HEAD))
                number, answer = frames.value(await self._process.stdout.readexactly(size))
                if number is None:
                    self._logged(*answer)
                elif (future := self._waiting.get(number)) and not future.done():
                    future.set_result(answer)
        status = await self._process.wait()
        if self._killed:
            return
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(Died(f"the worker ended with status {status}"))
        self._died(status)

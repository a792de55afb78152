"""The worker: a separate process that loads the app and runs its functions for the host.

As in Azure, an app that blocks, exits or is killed affects the worker and not the host. The worker ends when the host
closes the worker's standard input, or when the host has ended.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from emulators.host import logs
from emulators.host.errors import Refused
from emulators.host.worker import frames, telemetry
from emulators.host.worker.backend import Backend, Invocation, Outcome

LAST_SECONDS = 1.0  # for an event loop to end; a blocked loop is abandoned


def make_backend(name: str, app: Path) -> Backend:
    """Return the backend of this name. Raises Refused if the backend can't run here."""
    if name == "runtime":
        from emulators.host.worker.ms_runtime import RuntimeBackend  # needs a package that is rarely installed

        return RuntimeBackend(app)
    from emulators.host.worker.direct import DirectBackend

    return DirectBackend(app)


class Worker:
    """Answers each call of the host, (number, name), with (number, answer), on one event loop."""

    def __init__(self, backend_name: str, app: Path) -> None:
        self._name, self._app = backend_name, app
        self._answers = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)  # the app's output goes to the log
        self._writing = threading.Lock()
        self._running: set[asyncio.Task[None]] = set()
        self._functions: dict[str, str] = {}  # by the id of the running invocation
        self._ended = asyncio.Event()

    async def serve(self) -> int:
        """Serve until the host has ended. Returns the number of invocations that are still running."""
        threading.Thread(target=self._read, args=(asyncio.get_running_loop(),), daemon=True).start()
        await self._ended.wait()
        return len(self._running)

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            while True:
                loop.call_soon_threadsafe(self._begin, *frames.read(sys.stdin.buffer))
        except EOFError:
            loop.call_soon_threadsafe(self._ended.set)
            threading.Event().wait(LAST_SECONDS)
            os._exit(0)

    def _begin(self, number: int, call: Invocation | None) -> None:
        task = asyncio.create_task(self._answer(number, call))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _answer(self, number: int, call: Invocation | None) -> None:
        self._send((number, await (self._start() if call is None else self._invoke(call))))

    def _send(self, answer: tuple[int | None, Any]) -> None:
        """Send to the host: `answer` is a call's number with its answer, or None with a log record."""
        with self._writing:
            self._answers.write(frames.packed(answer))
            self._answers.flush()

    async def _start(self) -> Any:
        try:
            self._backend = make_backend(self._name, self._app)
            if self._name == "runtime":
                logs.configure(_invocation_in_thread())
            if telemetry.is_on():
                logging.getLogger().addHandler(
                    telemetry.ForHost(self._functions, lambda record: self._send((None, record)))
                )
            telemetry.before_load()
            indexed = await self._backend.start()
            telemetry.loaded(function.name for function in indexed)
            return indexed
        except Refused as exc:
            return exc

    async def _invoke(self, call: Invocation) -> Outcome:
        logs.invocation_id.set(call.id)
        telemetry.called(call)
        self._functions[call.id] = call.function
        try:
            return await self._backend.invoke(call)
        except asyncio.CancelledError:
            return Outcome(error="RuntimeError: the function cancelled itself")
        finally:
            del self._functions[call.id]


def _invocation_in_thread() -> Callable[[], str | None]:
    runtime: Any = importlib.import_module("azure_functions_runtime")
    current: Callable[[], str | None] = runtime.invocation_id_cv.get
    return current


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the host handles Ctrl-C and stops the worker
    backend_name, app = sys.argv[1:]
    os.chdir(app)  # as Azure's worker does
    logs.configure()

    async def serve() -> int:
        return await Worker(backend_name, Path(app)).serve()

    try:
        abandoned = asyncio.run(serve())
    except SystemExit as exc:  # a function's: it ends the worker, as in Azure
        logging.shutdown()
        os._exit(exc.code if isinstance(exc.code, int) else 1)
    if abandoned:
        logging.shutdown()
        os._exit(0)  # an ordinary exit would wait for their threads


if __name__ == "__main__":
    main()

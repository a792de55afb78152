"""Start, ready line and stop of the local cloud's parts.

A part is a child process that prints one line of JSON, `{"ready": true, ...}`, once it serves, and ends on SIGTERM. It
also ends when the process that started it has ended, so that a killed parent leaves nothing behind.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from emulators.private import PRIVATE_UMASK, private_append

T = TypeVar("T")

PARENT_POLL_SECONDS = 0.5
IS_WINDOWS = os.name == "nt"


def free_port() -> int:
    """Return a port on which no process listens now, for a part whose address must be known before it starts."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


class PartFailed(RuntimeError):
    """A part ended, or printed nothing, before its ready line. The message has the end of the part's log."""


@dataclass
class Part:
    """A running part. `info` is the ready line. The standard error goes to `log`, from the byte `log_start` on."""

    name: str
    process: subprocess.Popen[str]
    log: Path
    info: dict[str, Any] = field(default_factory=dict)
    log_start: int = 0

    def alive(self) -> bool:
        return self.process.poll() is None

    def stop(self, grace: float = 15.0) -> int:
        """End the part: SIGTERM, then SIGKILL after `grace` seconds. A second call does nothing. Returns the exit
        status.
        """
        if self.alive():
            self.process.terminate()
            try:
                self.process.wait(grace)
            except subprocess.TimeoutExpired:
                self.process.kill()
        if self.process.stdout:
            self.process.stdout.close()
        return self.process.wait()


def start(name: str, argv: list[str], *, log: Path, env: dict[str, str] | None = None, timeout: float = 60.0) -> Part:
    """Start a part and wait for its ready line. Raises PartFailed, with the end of the log, if no ready line comes."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with private_append(log) as stderr:
        log_start = log.stat().st_size
        process = subprocess.Popen(
            argv,
            stdout=subprocess.PIPE,
            stderr=stderr,
            stdin=subprocess.DEVNULL,
            text=True,
            env={**(os.environ if env is None else env), "EMULATORS_PARENT": str(os.getpid())},
            start_new_session=not IS_WINDOWS,  # Ctrl-C reaches the supervisor alone; it stops the parts in order
            umask=PRIVATE_UMASK,
        )
    part = Part(name, process, log, log_start=log_start)
    part.info = _ready_line(part, timeout)
    threading.Thread(target=_drain, args=(process, log), daemon=True).start()
    return part


def _ready_line(part: Part, timeout: float) -> dict[str, Any]:
    watchdog = threading.Timer(timeout, part.process.kill)
    watchdog.start()
    try:
        assert part.process.stdout is not None
        for line in part.process.stdout:
            with contextlib.suppress(json.JSONDecodeError):
                info = json.loads(line)
                if isinstance(info, dict) and info.get("ready"):
                    return info
    except BaseException:  # Ctrl-C
        part.stop(grace=1)
        raise
    finally:
        watchdog.cancel()
    part.stop(grace=1)
    raise PartFailed(
        f"{part.name} did not start (exit {part.process.returncode}); {part.log} ends with:\n"
        f"{tail(part.log, start=part.log_start)}"
    )


def _drain(process: subprocess.Popen[str], log: Path) -> None:
    """Keep the pipe empty, so that a part with output after its ready line never blocks on a full pipe."""
    with contextlib.suppress(ValueError), log.open("a") as out:
        assert process.stdout is not None
        for line in process.stdout:
            out.write(line)


def tail(path: Path, size: int = 4000, start: int = 0) -> str:
    """Return the last `size` bytes of a text file, but nothing before the byte `start`."""
    with path.open("rb") as f:
        f.seek(max(start, path.stat().st_size - size))
        return f.read().decode("utf-8", "replace")


async def serve_until_stopped(**info: Any) -> None:
    """Print the ready line, and return on SIGTERM or Ctrl-C, or after the end of the parent process."""
    await serve_until(asyncio.Event(), **info)


async def serve_until(ended: asyncio.Event, /, **info: Any) -> None:
    """Print the ready line, and return when `ended` is set, or as `serve_until_stopped` does.

    The signal handlers are installed before the line is printed, because a reader of the line may stop this process at
    once.
    """
    stopped = _stop_signal()
    sys.stdout.write(json.dumps({"ready": True, **info}) + "\n")
    sys.stdout.flush()
    parent = int(os.environ.get("EMULATORS_PARENT", "0"))
    while not stopped.is_set():
        if (parent and not _is_parent(parent)) or ended.is_set():
            return
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stopped.wait(), PARENT_POLL_SECONDS)


def _stop_signal() -> asyncio.Event:
    """Return an event that SIGTERM and Ctrl-C set."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for sig in (signal.SIGTERM, signal.SIGINT):
        try:
            loop.add_signal_handler(sig, stopped.set)
        except NotImplementedError:  # Windows has no loop signal handlers
            signal.signal(sig, lambda *_: loop.call_soon_threadsafe(stopped.set))
    return stopped


def _is_parent(pid: int) -> bool:
    # Windows keeps the parent's id after its end, and offers no cheap check. There Ctrl-C reaches all processes.
    return IS_WINDOWS or os.getppid() == pid


def heed_ctrl_c() -> None:
    """As `preexec_fn`, make SIGINT end the child even if this process ignores it (`nohup ... &`)."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def wait_for(condition: Callable[[], T | None], timeout: float, what: str, every: float = 0.05) -> T:
    """Call `condition()` repeatedly until it returns a true value, and return this value. Raises TimeoutError with
    `what`."""
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        if result := condition():
            return result
        time.sleep(every)
    raise TimeoutError(f"waited {timeout:g} s for {what}")

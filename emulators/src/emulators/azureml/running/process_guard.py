"""Ends the process groups of running jobs when the control plane has ended, even if it was killed.

The control plane starts this script and writes `+PGID` when a rank starts and `-PGID` when its group has ended. End of
input means that the control plane has ended: all remaining groups get SIGTERM, then SIGKILL. POSIX only.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable

GRACE_SECONDS = 2.0


class Guard:
    """The control plane's side of the guard process, which ends the jobs' process groups when the control plane has
    ended. It does nothing on systems without process groups (Windows)."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        if os.name == "posix":
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", __file__],
                stdin=subprocess.PIPE,
                start_new_session=True,  # a signal to the control plane's group must not end the guard
            )

    def watch(self, group: int) -> None:
        self._write(f"+{group}\n")

    def release(self, group: int) -> None:
        self._write(f"-{group}\n")

    def close(self) -> None:
        """End the guard, which stops every unreleased group."""
        if self._process and self._process.stdin:
            self._process.stdin.close()
            self._process.wait()

    def _write(self, line: str) -> None:
        if self._process and self._process.stdin and self._process.poll() is None:
            self._process.stdin.write(line.encode())
            self._process.stdin.flush()


def signal_groups(groups: Iterable[int], number: int) -> list[int]:
    """Send a signal to process groups. Returns the groups that still have a process."""
    alive = []
    for group in groups:
        try:
            os.killpg(group, number)
        except (ProcessLookupError, PermissionError):
            continue
        alive.append(group)
    return alive


def main() -> None:
    groups: set[int] = set()
    for line in sys.stdin:
        (groups.add if line[0] == "+" else groups.discard)(int(line[1:]))
    alive = signal_groups(groups, signal.SIGTERM)
    deadline = time.monotonic() + GRACE_SECONDS
    while alive and time.monotonic() < deadline:
        time.sleep(0.05)
        alive = signal_groups(alive, 0)
    signal_groups(alive, signal.SIGKILL)


if __name__ == "__main__":
    main()

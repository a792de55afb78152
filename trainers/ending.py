"""The end of a process: the exit code, the last line, and ending with the launcher."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn, TextIO

# Exit codes. 143 is what a shell reports for a process ended by SIGTERM (128 + 15); 75 is EX_TEMPFAIL of sysexits.h.
DONE, FAILED, BAD_DATA, NOT_NEEDED, INTERRUPTED, STOPPED = 0, 1, 2, 75, 130, 143


def write_line(text: str, stream: TextIO) -> None:
    """Write a line with one system call. `print` sends the newline separately, so processes with one log would mix
    lines.
    """
    stream.write(f"{text}\n")
    stream.flush()


def last_line(rank: int, code: int, text: str) -> int:
    """Write this process's last line (to standard error for a failure), and return the exit code."""
    sys.stdout.flush()
    line = f"rank {rank}: {' '.join(text.split())}"
    write_line(line, sys.stderr if code else sys.stdout)
    if code and (file := os.environ.get("TORCHELASTIC_ERROR_FILE")):  # torchrun repeats it as this process's last words
        facts = {"message": {"message": line, "extraInfo": {"py_callstack": "", "timestamp": str(int(time.time()))}}}
        with contextlib.suppress(OSError):
            Path(file).write_text(json.dumps(facts))
    return code


def leave(code: int) -> NoReturn:
    """End this process at once with `code`, as a trainer's last action. Functions registered with atexit don't run.

    Gloo's threads outlive the process group (torch 2.13). If such a thread releases its last tensor while the
    interpreter shuts down, it can't get the interpreter's lock and aborts the process (SIGABRT), although the training
    has completed.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def end_with_the_launcher(environ: Mapping[str, str]) -> None:
    """On Linux, ask the kernel to kill this process when its parent, torchrun, ends.

    Otherwise the workers of a killed launcher would continue as members of a group that the other nodes form again.
    """
    if sys.platform != "linux" or "TORCHELASTIC_RUN_ID" not in environ:
        return
    pr_set_pdeathsig = 1  # linux/prctl.h
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, int(signal.SIGKILL))

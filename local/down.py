"""`python3 trainyard.py down`: stop the local cloud; with --purge also remove its state."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shutil
import signal
import sys
from pathlib import Path

from cli.setup.file_trust import Untrusted
from emulators.private import unlock
from emulators.process import IS_WINDOWS, wait_for
from local import record

STOP_SECONDS = 90.0
SHOWN = 5  # names
# files that a killed writer leaves behind
_SCRATCH = re.compile(rf"\.(?:{'|'.join(map(re.escape, record.STATE))})\.\d+")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python3 trainyard.py down", description=__doc__)
    parser.add_argument(
        "--purge", action="store_true", help="also remove the state: blobs, tables, jobs, logs; and what a demo left"
    )
    parser.add_argument(
        "--home", type=Path, default=record.home_of(os.environ), help="folder of the state; default %(default)s"
    )
    options = parser.parse_args(argv)
    try:
        say(stop(options.home))
        if options.purge:
            say(purge(options.home))
            beside = record.beside(options.home)
            if record.has_state(beside):  # a failed demo leaves its cloud here for the logs
                stop(beside)
                say(purge(beside))
    except TimeoutError as exc:
        say(f"The local cloud is still there: {exc}.")
        return 1
    except Untrusted as exc:
        say(str(exc))
        return 1
    return 0


def stop(home: Path) -> str:
    """Stop the cloud on this folder and wait for the end. Raises TimeoutError for a cloud that does not end."""
    found = record.read(home) if record.has_state(home) else None
    if found:
        say("Stopping its jobs, then its parts ...")
        end(found)
    if record.has_state(home):
        wait_for(lambda: is_free(home), STOP_SECONDS, "its supervisor to end")
    return "The local cloud is stopped." if found else "No local cloud is running."


def end(found: record.Record) -> None:
    pids = [found.pid]
    if IS_WINDOWS:  # on Windows, SIGTERM ends the supervisor at once, so its parts need SIGTERM, too
        pids += found.parts.values()
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)


def purge(home: Path) -> str:
    """Remove the state of a stopped cloud, and its folder if the folder holds nothing else."""
    if not record.has_state(home):
        return f"There is no local cloud's state in {home}."
    made = (each for each in home.iterdir() if each.name in record.STATE or _SCRATCH.fullmatch(each.name))
    # remove the lock last, because it shows that more files may exist
    for entry in sorted(made, key=lambda each: each.name == "lock"):
        if entry.is_dir() and not entry.is_symlink():
            unlock(entry)
            shutil.rmtree(entry)
        else:
            entry.unlink()
    if others := sorted(entry.name for entry in home.iterdir()):
        return f"The state in {home} is removed. What no local cloud made stays there: {', '.join(others[:SHOWN])}."
    home.rmdir()
    return f"Removed {home}."


def is_free(home: Path) -> bool:
    lock = record.Lock.acquire(home)
    if lock:
        lock.release()
    return lock is not None


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()

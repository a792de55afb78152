"""The entry point of `python3 trainyard.py <command>` and of the installed `trainyard`: the commands that call the
API."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import NoReturn

from .errors import ERROR, INTERRUPTED, CliError


def main() -> int:
    """Run the command line. Returns the exit status; errors.EXIT_CODES has the meaning of each status."""
    try:
        _run()
    except CliError as exc:
        _say(str(exc))
        return exc.status
    except KeyboardInterrupt:
        _end(INTERRUPTED)
    except BrokenPipeError:  # the reader of our output has stopped, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # otherwise the flush at exit would fail again
    except OSError as exc:
        where = f"{exc.filename}: " if exc.filename is not None else ""  # the error of a full disk has no file name
        _say(f"{where}{exc.strerror or exc}.")
        return ERROR
    return 0


def _run() -> None:
    # Imported here, because the import takes a while and Ctrl-C may interrupt it.
    from . import commands
    from .session import program
    from .setup.shell_completion import VARIABLE

    commands.load(sys.argv[1:])(prog_name=program(), complete_var=VARIABLE)


def _end(status: int) -> NoReturn:
    """End the process without waiting for its threads, because an upload's threads may run for minutes."""
    with suppress(OSError):  # the reader of our output may have ended first
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(status)


def _say(words: str) -> None:
    from .terminal_text import visible

    sys.stderr.write(visible(f"trainyard: {words}\n"))


if __name__ == "__main__":
    sys.exit(main())

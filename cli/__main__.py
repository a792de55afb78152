"""`python3 trainyard.py <command>`, and the installed `trainyard`: the commands that speak to the API."""

from __future__ import annotations

import os
import sys

from . import commands  # noqa: F401  # registers them
from .errors import ERROR, INTERRUPTED, CliError
from .session import app, program
from .setup.shell_completion import VARIABLE
from .terminal_text import visible


def main() -> int:
    """Run the command line. Returns the exit status; errors.EXIT_CODES says what each means."""
    try:
        app(prog_name=program(), complete_var=VARIABLE)
    except CliError as exc:
        sys.stderr.write(visible(f"trainyard: {exc}\n"))
        return exc.status
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # whoever reads our output has seen enough, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the flush at exit would fail again
    except OSError as exc:
        where = f"{exc.filename}: " if exc.filename is not None else ""  # a full disk has no name
        sys.stderr.write(visible(f"trainyard: {where}{exc.strerror or exc}.\n"))
        return ERROR
    return 0


if __name__ == "__main__":
    sys.exit(main())

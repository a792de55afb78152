"""Errors for ending a command, and exit statuses.

    CliError         1  the API refused, or something is wrong here; the message says what to do
    |-- NotFound     3  no such run, drop, cluster or file
    `-- Unreachable  6  the API did not answer; the same command may work later

A run that ended badly is not an error of the command, but scripts want to know: see `status_of`.
"""

from __future__ import annotations

OK, ERROR, USAGE, NOT_FOUND, RUN_FAILED, RUN_CANCELED, UNREACHABLE, INTERRUPTED = 0, 1, 2, 3, 4, 5, 6, 130

EXIT_CODES = {
    OK: "Done.",
    ERROR: "The API refused the request, or something is wrong on this machine. The message says what to do.",
    USAGE: "A command, argument or option is wrong. The message says which.",
    NOT_FOUND: "There is no such run, drop, cluster or file.",
    RUN_FAILED: "The run that was followed or fetched has failed.",
    RUN_CANCELED: "The run that was followed or fetched was canceled.",
    UNREACHABLE: "The API did not answer. The same command may work later.",
    INTERRUPTED: "Ctrl-C. A run that was followed continues, unless you chose to cancel it.",
}


class CliError(Exception):
    """An error for ending the command. The message is for people, with advice; `code` is the API's error code, or
    ''.
    """

    status = ERROR

    def __init__(self, message: str, code: str = "") -> None:
        super().__init__(message)
        self.code = code


class NotFound(CliError):
    status = NOT_FOUND


class Unreachable(CliError):
    status = UNREACHABLE


def unreadable(what: object, exc: OSError) -> CliError:
    """Return the error for a file that can't be read: NotFound if the file does not exist, otherwise CliError."""
    kind = NotFound if isinstance(exc, FileNotFoundError) else CliError
    return kind(f"{what} can't be read: {exc.strerror}.")


def extra(name: str) -> str:
    """Return the instruction for installing this extra of pyproject.toml."""
    return f"in a clone of Trainyard, pip install '.[{name}]'"


def status_of(run_state: str) -> int:
    """Return the exit status for the final state of a run."""
    return {"failed": RUN_FAILED, "canceled": RUN_CANCELED}.get(run_state, OK)

"""Facts parsed from sentences. Rows of the previous version store these facts only in sentences.

This is the only module that parses our own sentences. Delete it together with support for such rows. Pure.
"""

from __future__ import annotations

import re

from shared.runs.codes import CancelCode, Deed

_EXIT_CODE = re.compile(r"exited with status code (\d+)")
_SWEEP = "Stopped by its sweep: "
_EVICTED = re.compile(r"evicted member \d+ \(")


def exit_code(why: str) -> int:
    """The exit code of a member's process, from the reason of the failure; 0 without an exit code."""
    match = _EXIT_CODE.search(why)
    return int(match[1]) if match else 0


def log_of(reason: str) -> str:
    """The tail of the log in a failed run's reason: the lines after the sentence and the log's name with a colon."""
    return reason.partition(":\n")[2]


def cancel_code(why: str) -> CancelCode:
    """The code for the reason of a cancel. Only the sentence of a sweep is recognized."""
    return CancelCode.SWEEP if why.startswith(_SWEEP) else CancelCode.NONE


def deed(what: str) -> Deed:
    """The kind of a person's action, from its sentence."""
    return Deed.EVICTED if _EVICTED.match(what) else Deed.TAGS

"""Facts that rows of the previous version store only in sentences, parsed from these sentences.

This is the only module that parses our own sentences. Delete it together with support for such rows. Pure.
"""

from __future__ import annotations

import re

from shared.runs.codes import CancelCode, Deed

_EXIT_CODE = re.compile(r"exited with status code (\d+)")
_SWEEP = "Stopped by its sweep: "
_EVICTED = re.compile(r"evicted member \d+ \(")


def exit_code(why: str) -> int:
    """The exit code of a member's process, from the reason of its failure; 0 if there is none."""
    match = _EXIT_CODE.search(why)
    return int(match[1]) if match else 0


def log_of(reason: str) -> str:
    """The end of the log in the reason of a failed run: its sentence, the log's name and a colon, then the lines."""
    return reason.partition(":\n")[2]


def cancel_code(why: str) -> CancelCode:
    """Who ended a run. Only a sweep wrote what code needs to know."""
    return CancelCode.SWEEP if why.startswith(_SWEEP) else CancelCode.NONE


def deed(what: str) -> Deed:
    """What someone did to a run."""
    return Deed.EVICTED if _EVICTED.match(what) else Deed.TAGS

"""`logs RUN --why` opens a log at the line that shows why the run failed."""

from __future__ import annotations

from typing import Any

import pytest

from cli.commands.why_failed import Place, around, place
from cli.errors import CliError

LOG = [f"step {n} loss 0.5" for n in range(40)] + ["KeyError: 'label'", *[f"after {n}" for n in range(20)]]


class Reader:
    """A log in two pieces; the second ends it."""

    def __init__(self, lines: list[str]) -> None:
        text = "\n".join(lines)
        self.pieces = [text[:90], text[90:]]
        self.offset, self.complete = 0, False

    def read(self) -> str:
        piece = self.pieces.pop(0)
        self.offset, self.complete = self.offset + len(piece), not self.pieces
        return piece


class Session:
    """The API's answer about one run."""

    def __init__(self, diagnosis: Any) -> None:
        self.api, self.answer = self, {"diagnosis": diagnosis}

    def get(self, *_: str) -> Any:
        return self.answer


def shown(number: int, text: str, lines: list[str] = LOG) -> list[str]:
    reader: Any = Reader(lines)
    return around(Place(0, number, text, "It failed."), reader).splitlines()


@pytest.mark.parametrize("number", [41, 0, 7])
def test_the_line_is_found_by_its_number_or_else_by_its_text(number: int) -> None:
    """A truncated log has no line numbers, and a number may belong to another part."""
    lines = shown(number, "KeyError: 'label'")
    assert lines[0] == "It failed."
    assert lines[13] == ">     41 KeyError: 'label'"
    assert (lines[1], lines[-1]) == ("      29 step 28 loss 0.5", "      47 after 5")


def test_a_line_that_the_log_no_longer_has_is_quoted_alone() -> None:
    """No text of a log controls the terminal."""
    assert shown(3, "gone") == ["It failed.", "> gone"]
    assert "\x1b" not in "".join(shown(1, "red", ["\x1b[31mred\x1b[2J"]))


def test_a_run_without_a_diagnosis_says_so() -> None:
    """A run without a diagnosis gives an error. With several quotes, the requested rank selects one."""
    quotes = [{"rank": rank, "number": rank, "text": f"line {rank}"} for rank in (1, 2)]
    some: Any = Session({"summary": "It failed.", "evidence": quotes})
    none: Any = Session(None)
    assert place(some, "run", None).rank == 1
    assert place(some, "run", 2) == Place(2, 2, "line 2", "It failed.")
    with pytest.raises(CliError, match="Only a failed run"):
        place(none, "run", None)

"""docs/retirements.md lists services that will end and that Trainyard uses. It warns 90 days before, and lists only
what is used."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "retirements.md").read_text("utf-8")
NOTICE = timedelta(days=90)
USED = re.compile(r"`(?P<file>[^`]+)`: `(?P<text>[^`]+)`")


@dataclass(frozen=True)
class Retirement:
    """A row of the first table: what ends and when, the file and the text in it that use it, and the source."""

    ends: date
    what: str
    file: str
    text: str
    source: str


def in_use(page: str) -> list[Retirement]:
    """The rows of the table under `In use`. Raises ValueError for a row that can't be read."""
    section = page.partition("## In use\n")[2].partition("\n## ")[0]
    return [_retirement(line) for line in section.splitlines() if re.match(r"\| \d", line)]


def _retirement(line: str) -> Retirement:
    ends, what, used, _, source = (cell.strip() for cell in line.strip("|").split("|"))
    if not (found := USED.fullmatch(used)):
        raise ValueError(f"{used!r} names no file and text")
    return Retirement(date.fromisoformat(ends), what, found["file"], found["text"], source)


def due(rows: list[Retirement], today: date) -> list[str]:
    """A sentence for each row whose date is at most NOTICE away, or past."""
    near = sorted((row for row in rows if row.ends - today <= NOTICE), key=lambda row: row.ends)
    return [f"{row.ends}: {row.what} (docs/retirements.md)" for row in near]


ROWS = in_use(PAGE)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.text)
def test_a_row_names_what_is_used(row: Retirement) -> None:
    """The file of each row contains the text of the row, and the row has a source."""
    assert row.text in (ROOT / row.file).read_text("utf-8")
    assert re.search(r"\]\(https://", row.source)


def test_the_warning_begins_ninety_days_before() -> None:
    """There is no warning 91 days before the date. From 90 days on, and after the date, a warning names date and
    thing."""
    row = Retirement(date(2027, 6, 30), "Ubuntu 22.04", "f", "t", "s")
    assert due([row], date(2027, 3, 31)) == []
    expected = ["2027-06-30: Ubuntu 22.04 (docs/retirements.md)"]
    assert due([row], date(2027, 4, 1)) == due([row], date(2028, 1, 1)) == expected


def test_a_broken_row_is_told() -> None:
    """A row without a file and a text is refused, so that no row is skipped silently."""
    with pytest.raises(ValueError, match="names no file"):
        in_use("## In use\n| 2027-01-01 | a | b | c | d |\n")


@pytest.mark.filterwarnings("default:.*docs/retirements.md")
def test_what_ends_soon_is_warned_of() -> None:
    """The gate warns of each thing in use that ends within 90 days or has ended."""
    assert ROWS
    for sentence in due(ROWS, datetime.now(UTC).date()):
        warnings.warn(sentence, stacklevel=1)

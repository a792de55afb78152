"""The findings of a check, each with a severity, a sentence and names; and how a reader complains."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import islice
from typing import Any

NAMED = 10  # names per finding
LONGEST = 160  # characters of a name in a finding


class DataError(ValueError):
    """The data set can't be used. The message names the file, the expected content and the content found."""


class Severity(StrEnum):
    """In ascending order. A note describes the data; a warning lets the drop train; a refusal does not."""

    NOTE = "note"
    WARN = "warn"
    REFUSE = "refuse"


@dataclass(frozen=True)
class Finding:
    """One finding. `names` are the first NAMED of the `count` affected files, classes or places."""

    severity: Severity
    code: str
    sentence: str
    names: tuple[str, ...] = ()
    count: int = 0

    def __str__(self) -> str:
        """Return the sentence, followed by the names."""
        if not self.names:
            return self.sentence
        more = f" and {self.count - len(self.names):,} more" if self.count > len(self.names) else ""
        return f"{self.sentence} {', '.join(self.names)}{more}."


Complain = Callable[[str, str, str], None]  # of a reader: (code, place, what was expected and found)


def fail(_code: str, place: str, message: str) -> None:
    """Raise DataError, as trainers do for a complaint."""
    raise DataError(f"{place}: {message}")


def plain(name: str) -> str:
    """Return a name without control characters, cut to LONGEST characters."""
    text = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in name)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


@dataclass
class Findings:
    """The findings of one check, in the order in which they were made. Complaints with one code are one finding."""

    made: list[Finding] = field(default_factory=list)
    _complaints: dict[tuple[Severity, str], list[str]] = field(default_factory=dict)
    _counts: dict[tuple[Severity, str], int] = field(default_factory=dict)

    def add(self, severity: Severity, code: str, sentence: str, names: Iterable[str] = (), count: int = 0) -> None:
        """Add a finding. With names, the sentence ends with a colon. `count` is the total number if `names` is
        incomplete."""
        rest = iter(names)
        first = tuple(plain(name) for name in islice(rest, NAMED))
        self.made.append(Finding(severity, code, sentence, first, count or len(first) + sum(1 for _ in rest)))

    def refuse(self, code: str, sentence: str, names: Iterable[str] = ()) -> None:
        self.add(Severity.REFUSE, code, sentence, names)

    def warn(self, code: str, sentence: str, names: Iterable[str] = (), count: int = 0) -> None:
        self.add(Severity.WARN, code, sentence, names, count)

    def note(self, code: str, sentence: str, names: Iterable[str] = ()) -> None:
        self.add(Severity.NOTE, code, sentence, names)

    def complain(self, code: str, place: str, message: str, severity: Severity = Severity.REFUSE) -> None:
        """Record a complaint of a reader. The first NAMED complaints with one code are kept in full."""
        key = severity, code
        self._counts[key] = self._counts.get(key, 0) + 1
        kept = self._complaints.setdefault(key, [])
        if len(kept) < NAMED:
            kept.append(f"{plain(place)}: {message}")

    def doubt(self, code: str, place: str, message: str) -> None:
        """Record a complaint about something that does not stop the trainer."""
        self.complain(code, place, message, Severity.WARN)

    @contextmanager
    def catching(self, code: str) -> Iterator[None]:
        """Record a DataError of the block as a refusal."""
        try:
            yield
        except DataError as error:
            self.refuse(code, str(error))

    def rows(self) -> list[list[Any]]:
        """Return the findings as JSON-serializable values, for `merge`."""
        made = [[each.severity, each.code, each.sentence, list(each.names), each.count] for each in self.made]
        return made + [[*key, None, kept, self._counts[key]] for key, kept in self._complaints.items()]

    def merge(self, rows: Iterable[Sequence[Any]]) -> None:
        """Add the findings of other Findings (`rows`)."""
        for severity, code, sentence, names, count in rows:
            if sentence is not None:
                self.made.append(Finding(Severity(severity), code, sentence, tuple(names), count))
                continue
            key = Severity(severity), code
            kept = self._complaints.setdefault(key, [])
            kept += names[: NAMED - len(kept)]
            self._counts[key] = self._counts.get(key, 0) + count

    def all(self) -> list[Finding]:
        """Return every finding, the most severe first."""
        told = [
            Finding(severity, code, _sentence(kept, self._counts[severity, code]), tuple(kept[1:]),
                    self._counts[severity, code] - 1)
            for (severity, code), kept in self._complaints.items()
        ]  # fmt: skip
        order = list(Severity)
        return sorted([*self.made, *told], key=lambda finding: -order.index(finding.severity))


def _sentence(kept: list[str], count: int) -> str:
    return kept[0] if count == 1 else f"{kept[0]}; {count - 1:,} more like this:"

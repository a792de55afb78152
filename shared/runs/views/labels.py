"""The values of a run's fields that are declared with a label (`labeled`), for answers and lists. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from shared.kernel.encode import plain
from shared.kernel.parts import columns
from shared.runs.features import parts
from shared.runs.model import Run


def labeled_values(run: Run) -> dict[str, str]:
    """The values of the labeled fields of the run and of its features' parts, by label, without empty values."""
    return dict(_texts(run)) | {
        label: text
        for part in parts()
        if (value := run.feature(part.kind)) is not None
        for label, text in _texts(value)
    }


def listed_values(run: Run) -> dict[str, str]:
    """The values of the run's own labeled fields for which lists have a column, by label, without empty values."""
    return dict(_texts(run, only_listed=True))


def _texts(record: object, only_listed: bool = False) -> Iterator[tuple[str, str]]:
    """Yield the label and the text of each labeled field of a record that has a value."""
    for each in columns(type(record)).values():
        if each.label and (each.listed or not only_listed) and (value := each.of(record)) not in (None, ""):
            yield each.label, str(plain(value))

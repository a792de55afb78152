"""A job's command, independent of any compute backend: text, and references to inputs and outputs. Pure.

Each reader of a job format creates a Command, and the writer of each compute backend converts the references to the
backend's form (shared/jobs/readers/expressions.py for Azure ML).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

LAUNCHER = "elastic.launch"  # the launcher in trainers/elastic, with which a job finds the other jobs of its run


class ReferenceGroup(StrEnum):
    """The target of a reference: an input (data, or a parameter's value) or an output."""

    INPUT = "inputs"
    OUTPUT = "outputs"


@dataclass(frozen=True)
class Reference:
    """The value of an input or output: for a parameter its value, for data and outputs the path on the node."""

    group: ReferenceGroup
    name: str

    def __str__(self) -> str:
        return f"{self.group}.{self.name}"


@dataclass(frozen=True)
class OptionalPart:
    """A part of a command. A reference without a value omits the whole part."""

    parts: tuple[str | Reference, ...]

    def __str__(self) -> str:
        return f"[{_text(self.parts)}]"


Part = str | Reference | OptionalPart


@dataclass(frozen=True)
class Command:
    """The command of a job on each node. An elastic command finds the run's other jobs through the launcher."""

    parts: tuple[Part, ...] = ()
    elastic: bool = False

    def __bool__(self) -> bool:
        return bool(self.parts)

    def __str__(self) -> str:
        """The command in readable form, with references in braces."""
        return _text(self.parts)

    @property
    def required(self) -> Iterator[Reference]:
        """The references with a required value."""
        return (part for part in self.parts if isinstance(part, Reference))

    def followed_by(self, *parts: Part) -> Command:
        """The command followed by more parts, separated by one space."""
        last = self.parts[-1] if self.parts else ""
        own = (*self.parts[:-1], last.rstrip()) if isinstance(last, str) else self.parts
        return replace(self, parts=joined((*own, " ", *parts)))


def joined(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """The parts with adjacent texts merged and empty texts removed: equal commands have equal parts."""
    made: list[Part] = []
    for part in parts:
        if isinstance(part, str) and made and isinstance(made[-1], str):
            made[-1] += part
        elif part != "":
            made.append(part)
    return tuple(made)


def _text(parts: tuple[Part, ...]) -> str:
    return "".join(f"{{{part}}}" if isinstance(part, Reference) else str(part) for part in parts)

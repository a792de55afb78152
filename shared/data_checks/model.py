"""What a check of a drop's data said, as the record of a run and the card of a generation keep it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

MOST_SENTENCES = 20
LONGEST = 600  # characters of a sentence


class CheckVerdict(StrEnum):
    FINE = "fine"
    WARNED = "warned"
    REFUSED = "refused"


@dataclass(frozen=True)
class DataCheck:
    """The verdict; the reasons for it, most severe first; and the data card (trainers/data_checks/card.py).

    A route that only warns has refusals and the verdict `warned`. `generation` is what was checked, for a run
    that reads it: mnist/digits-1@2.
    """

    verdict: CheckVerdict
    refusals: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    card: dict[str, Any] = field(default_factory=dict)
    generation: str = ""


def shortened(sentences: list[str]) -> tuple[str, ...]:
    """Return the first sentences, each cut to the length that a record keeps."""
    return tuple(each if len(each) <= LONGEST else f"{each[: LONGEST - 1]}…" for each in sentences[:MOST_SENTENCES])

"""The result of a check of a drop's data, as the record of a run and the card of a generation store it."""

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

    A route that only warns has refusals and the verdict `warned`. For a run that reads the data, `generation` names the
    checked data: mnist/digits-1@2.
    """

    verdict: CheckVerdict
    refusals: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    card: dict[str, Any] = field(default_factory=dict)
    generation: str = ""


def shortened(sentences: list[str]) -> tuple[str, ...]:
    """Return the first sentences, each cut to the length that a record stores."""
    return tuple(each if len(each) <= LONGEST else f"{each[: LONGEST - 1]}…" for each in sentences[:MOST_SENTENCES])

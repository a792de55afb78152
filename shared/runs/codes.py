"""Codes beside sentences in a run's record: what code compares, where people read the sentence. Pure."""

from __future__ import annotations

from enum import StrEnum


class CancelCode(StrEnum):
    """Why a run was asked to end. A code of a later version is OTHER."""

    NONE = ""  # nobody asked, or the version before recorded no code
    PERSON = "person"
    SWEEP = "sweep"  # the sweep whose trial it is
    BUDGET = "budget"
    TIME_LIMIT = "time_limit"
    IDLE_GPUS = "idle_gpus"
    MOVED = "moved"  # another run goes on with its training
    SCHEDULE = "schedule"  # the schedule that made it makes another one
    OTHER = "other"

    @classmethod
    def _missing_(cls, value: object) -> CancelCode | None:
        return cls.OTHER if isinstance(value, str) else None


class Deed(StrEnum):
    """What someone did to a run after it was made."""

    NONE = ""  # the version before recorded no code
    TAGS = "tags"
    EVICTED = "evicted"
    OTHER = "other"

    @classmethod
    def _missing_(cls, value: object) -> Deed | None:
        return cls.OTHER if isinstance(value, str) else None

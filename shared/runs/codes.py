"""Codes for programs, beside the sentences for people in a run's record. Pure."""

from __future__ import annotations

from enum import StrEnum


class CancelCode(StrEnum):
    """Why a run was asked to end. A code of a later version is OTHER."""

    NONE = ""  # not canceled, or the previous version recorded no code
    PERSON = "person"
    SWEEP = "sweep"  # by the sweep of which the run is a trial
    BUDGET = "budget"
    TIME_LIMIT = "time_limit"
    IDLE_GPUS = "idle_gpus"
    HANG = "hang"
    MOVED = "moved"  # another run continues the training
    SCHEDULE = "schedule"  # the schedule that made the run makes its replacement
    OTHER = "other"

    @classmethod
    def _missing_(cls, value: object) -> CancelCode | None:
        return cls.OTHER if isinstance(value, str) else None


class Deed(StrEnum):
    """The kind of a person's action on an existing run."""

    NONE = ""  # the previous version recorded no code
    TAGS = "tags"
    EVICTED = "evicted"
    OTHER = "other"

    @classmethod
    def _missing_(cls, value: object) -> Deed | None:
        return cls.OTHER if isinstance(value, str) else None

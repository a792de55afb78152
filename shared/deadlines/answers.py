"""Deadlines in the responses of the HTTP API."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct


class DateCosts(Struct):
    """The costs of a run with a deadline, in dollars: at best, as expected, and at worst."""

    done_by: datetime
    takes_seconds: float
    clusters: Annotated[list[str], Meta(description="With low-priority nodes, and with dedicated ones.")]
    best: float
    expected: float
    worst: float
    why: str

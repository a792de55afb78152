"""A record together with its etag."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Stored(Generic[T]):
    """A record as it was read, with the etag that guards its next write."""

    value: T
    etag: str

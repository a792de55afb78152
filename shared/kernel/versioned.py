"""A record together with an etag."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Stored(Generic[T]):
    """A record in the state of the read, and the etag for the next write."""

    value: T
    etag: str

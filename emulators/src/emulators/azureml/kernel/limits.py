"""Azure Resource Manager's own limits: a bucket of tokens for each principal and kind of request. No I/O.

A request takes a token. With an empty bucket it is answered with 429 and the seconds until the next token.

https://learn.microsoft.com/azure/azure-resource-manager/management/request-limits-and-throttling
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

KINDS = {"GET": "reads", "HEAD": "reads", "OPTIONS": "reads", "DELETE": "deletes"}  # all others are writes


@dataclass(frozen=True)
class Bucket:
    """A token bucket: its size in requests, and its refill in requests per second."""

    size: float
    refill: float


@dataclass(frozen=True)
class Limits:
    """The limits of one subscription, by default Azure's."""

    reads: Bucket = Bucket(250, 25)
    writes: Bucket = Bucket(200, 10)
    deletes: Bucket = Bucket(200, 10)


@dataclass(frozen=True)
class Verdict:
    """Whether a request may pass, the remaining tokens for its kind, and the seconds until a retry."""

    allowed: bool
    kind: str
    left: int
    retry_after: int = 0

    @property
    def headers(self) -> dict[str, str]:
        headers = {f"x-ms-ratelimit-remaining-subscription-{self.kind}": str(self.left)}
        return headers if self.allowed else {**headers, "Retry-After": str(self.retry_after)}


@dataclass
class Throttle:
    """The token buckets of all principals. A bucket without recent use is full again, and is dropped."""

    limits: Limits
    clock: Callable[[], float]
    _levels: dict[tuple[str, str], tuple[float, float]] = field(default_factory=dict)  # tokens, at a moment

    def acquire(self, principal: str, method: str) -> Verdict:
        kind, now = KINDS.get(method, "writes"), self.clock()
        bucket: Bucket = getattr(self.limits, kind)
        tokens, since = self._levels.get((principal, kind), (bucket.size, now))
        tokens = min(bucket.size, tokens + (now - since) * bucket.refill)
        allowed = tokens >= 1
        tokens -= allowed
        self._levels[principal, kind] = (tokens, now)
        if len(self._levels) > 1000:
            self._forget_the_rested(now)
        wait = 0 if allowed else max(1, math.ceil((1 - tokens) / bucket.refill))
        return Verdict(allowed, kind, int(tokens), wait)

    def _forget_the_rested(self, now: float) -> None:
        self._levels = {
            (principal, kind): (tokens, since)
            for (principal, kind), (tokens, since) in self._levels.items()
            if tokens + (now - since) * getattr(self.limits, kind).refill < getattr(self.limits, kind).size
        }

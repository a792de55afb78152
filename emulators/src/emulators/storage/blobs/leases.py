"""Leases of blobs and containers: while a lease is held, only its holder may write or delete. Pure. Times are
seconds since 1970.

https://learn.microsoft.com/rest/api/storageservices/lease-blob
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from emulators.storage.common.errors import StorageError

FOR_EVER = -1  # a duration


@dataclass(frozen=True)
class Lease:
    """A lease on a blob or container. `ends`: when the lease expires, or when its break period ends."""

    id: str = ""
    duration: int = FOR_EVER
    ends: float = 0.0
    broken: bool = False

    def state(self, now: float) -> str:
        """Return the state: available, leased, expired, breaking or broken."""
        if not self.id:
            return "available"
        if self.broken:
            return "breaking" if now < self.ends else "broken"
        return "leased" if self.duration == FOR_EVER or now < self.ends else "expired"

    def held(self, now: float) -> bool:
        return self.state(now) in ("leased", "breaking")

    def acquired(self, now: float, duration: int, wanted: str) -> Lease:
        if self.held(now):
            if self.id != wanted:
                raise StorageError(409, "LeaseAlreadyPresent", "There is already a lease present.")
            if self.broken:
                sentence = "The lease ID matched, but the lease is currently in breaking state and cannot be acquired."
                raise StorageError(409, "LeaseIsBreakingAndCannotBeAcquired", sentence)
        return Lease(wanted, duration, now + duration)

    def renewed(self, now: float, asked: str) -> Lease:
        self._must_match(asked)
        if self.broken:
            sentence = "The lease ID matched, but the lease has been broken explicitly and cannot be renewed."
            raise StorageError(409, "LeaseIsBrokenAndCannotBeRenewed", sentence)
        return replace(self, ends=now + self.duration)

    def changed(self, now: float, asked: str, wanted: str) -> Lease:
        if self.state(now) != "leased":
            if self.state(now) == "breaking":
                sentence = "The lease ID matched, but the lease is currently in breaking state and cannot be changed."
                raise StorageError(409, "LeaseIsBreakingAndCannotBeChanged", sentence)
            raise _none_to_change()
        if wanted != self.id:
            self._must_match(asked)
        return replace(self, id=wanted)

    def released(self, asked: str) -> Lease:
        self._must_match(asked)
        return Lease()

    def breaking(self, now: float, period: int | None) -> Lease:
        """Break the lease in `period` seconds, or earlier if it would expire before. Without `period`, the lease
        ends after its remaining time, and an infinite lease ends at once."""
        state = self.state(now)
        if state == "available":
            raise _none_to_change()
        if state in ("broken", "expired"):
            return replace(self, broken=True, ends=now)
        rest = math.inf if self.duration == FOR_EVER and not self.broken else self.ends - now
        wanted = rest if period is None else float(period)
        return replace(self, broken=True, ends=now + (0.0 if wanted == math.inf else min(rest, wanted)))

    def admit(self, now: float, given: str, kind: str) -> None:
        """Raise StorageError, 412, unless a write or deletion with this lease id is allowed."""
        if self.held(now):
            if not given:
                sentence = f"There is currently a lease on the {kind.lower()} and no lease ID was specified."
                raise StorageError(412, "LeaseIdMissing", sentence)
            self.admit_read(now, given, kind)
        elif given:
            self.admit_read(now, given, kind)

    def admit_read(self, now: float, given: str, kind: str) -> None:
        """Raise StorageError, 412, for a wrong lease id. No lease id is needed for a read."""
        if not given:
            return
        if not self.held(now):
            sentence = f"There is currently no lease on the {kind.lower()}."
            raise StorageError(412, f"LeaseNotPresentWith{kind}Operation", sentence)
        if given != self.id:
            sentence = f"The lease ID specified did not match the lease ID for the {kind.lower()}."
            raise StorageError(412, f"LeaseIdMismatchWith{kind}Operation", sentence)

    def _must_match(self, asked: str) -> None:
        if not self.id or self.id != asked:
            sentence = "The lease ID specified did not match the lease ID for the resource."
            raise StorageError(409, "LeaseIdMismatchWithLeaseOperation", sentence)


def _none_to_change() -> StorageError:
    return StorageError(409, "LeaseNotPresentWithLeaseOperation", "There is currently no lease on the resource.")

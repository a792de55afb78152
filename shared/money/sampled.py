"""The clusters' samples for one pass over the books: each day of a cluster is read only once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cached_property

from shared.clusters.ports import Samples
from shared.clusters.samples import HOLDS, Sample

DAY = timedelta(days=1)


def start_of_day(at: datetime) -> datetime:
    return at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


class Sampled:
    """The samples, cached per day. One request reads the samples of a day."""

    def __init__(self, samples: Samples) -> None:
        self._samples = samples
        self._days: dict[tuple[str, datetime], list[Sample]] = {}

    @cached_property
    def clusters(self) -> list[str]:
        """Return the clusters with samples, including deleted clusters."""
        return self._samples.clusters()

    def first_day(self, cluster: str) -> datetime | None:
        return self._samples.first_day(cluster)

    def between(self, cluster: str, since: datetime, until: datetime) -> list[Sample]:
        """Return the cluster's samples with since <= at < until, oldest first."""
        day, found = start_of_day(since), list[Sample]()
        while day < until:
            found += [sample for sample in self._day(cluster, day) if since <= sample.at < until]
            day += DAY
        return found

    def around(self, cluster: str, since: datetime, until: datetime, first: datetime, now: datetime) -> list[Sample]:
        """Return the samples that show the cluster's number of nodes from `since` to `until`, oldest first.

        These are the samples in this period, the last one before, and the first one after, up to `now`. The cluster's
        oldest sample is not before `first`. Without a sample in or after the period, the cluster is deleted: an earlier
        sample counts only if it is at most HOLDS old.
        """
        found = self.between(cluster, since, until) + self._first_after(cluster, until, now)
        before = self.between(cluster, since - (DAY if found else HOLDS), since)
        if found and not before:
            before = self._last_before(cluster, since - DAY, first)
        return before[-1:] + found

    def _first_after(self, cluster: str, begin: datetime, now: datetime) -> list[Sample]:
        while begin <= now:
            if found := self.between(cluster, begin, start_of_day(begin) + DAY):
                return found[:1]
            begin = start_of_day(begin) + DAY
        return []

    def _last_before(self, cluster: str, until: datetime, first: datetime) -> list[Sample]:
        while first < until:
            if found := self.between(cluster, until - DAY, until):
                return found[-1:]
            until -= DAY
        return []

    def _day(self, cluster: str, day: datetime) -> list[Sample]:
        if (cluster, day) not in self._days:
            self._days[cluster, day] = list(self._samples.between(cluster, day, day + DAY))
        return self._days[cluster, day]

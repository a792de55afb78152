"""The clusters' samples for one pass over the books: each day of a cluster is read only once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cached_property

from shared.clusters.ports import Samples
from shared.clusters.samples import Sample

DAY = timedelta(days=1)


def start_of_day(at: datetime) -> datetime:
    return at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


class Sampled:
    """The samples, cached per day. One request reads all samples of a day."""

    def __init__(self, samples: Samples) -> None:
        self._samples = samples
        self._days: dict[tuple[str, datetime], list[Sample]] = {}

    @cached_property
    def clusters(self) -> list[str]:
        """Return the clusters that have samples, including deleted clusters."""
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

    def _day(self, cluster: str, day: datetime) -> list[Sample]:
        if (cluster, day) not in self._days:
            self._days[cluster, day] = list(self._samples.between(cluster, day, day + DAY))
        return self._days[cluster, day]

"""The node counts that the page draws: a period without counts is not drawn as a period with nodes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from shared.api.nodes import UNCOUNTED, changes, with_gaps
from shared.clusters.samples import Sample

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


def sample(minutes: float, idle: int, steady_since: float | None = None) -> Sample:
    since = None if steady_since is None else NOW + timedelta(minutes=steady_since)
    state = "" if since is None else "Steady"
    return Sample("gpu", NOW + timedelta(minutes=minutes), idle=idle, allocation=state, allocation_since=since)


def told(*samples: Sample) -> list[tuple[float, int, bool]]:
    drawn = changes(with_gaps(samples))
    return [((each.at - NOW) / timedelta(minutes=1), each.nodes, each.seen_by != UNCOUNTED) for each in drawn]


def test_a_gap_is_shown_as_not_counted() -> None:
    """A count holds for five minutes. After that the number is unknown until the next count."""
    assert told(sample(0, 2), sample(100, 0)) == [(0, 2, True), (5, 0, False), (100, 0, True)]
    assert told(sample(0, 2), sample(100, 2)) == [(0, 2, True), (5, 0, False), (100, 2, True)]
    assert told(sample(0, 2), sample(10, 0)) == [(0, 2, True), (10, 0, True)]


def test_a_cluster_that_did_not_change_its_size_is_no_gap() -> None:
    """Azure ML reports since when the size is steady, so the time since then is no gap."""
    assert told(sample(0, 2, -9), sample(100, 2, -9)) == [(0, 2, True)]
    assert told(sample(0, 2, -9), sample(100, 2, 50)) == [(0, 2, True), (5, 0, False), (100, 2, True)]

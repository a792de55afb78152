"""The usage of a run as a value: by node, as a summary, and as rows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.usage.model import Measurement, Metric, NodeSeries, NodeUsage, of_rows, rows, summary, together

BEGIN = datetime(2026, 11, 28, 12, tzinfo=UTC)


def series(metric: Metric, node: str, *values: float, device: str = "") -> NodeSeries:
    """Return one value a minute; each peak is 1 above the value."""
    points = (Measurement(BEGIN + timedelta(minutes=n), value, value + 1) for n, value in enumerate(values))
    return NodeSeries(metric, node, device, tuple(points))


TWO_NODES = NodeUsage(
    (
        series(Metric.CPU, "a", 10, 20),
        series(Metric.CPU, "b", 90, 100),
        series(Metric.MEMORY, "a", 1000, 3000),
        series(Metric.MEMORY_IN_ALL, "a", 56_000, 56_000),
        series(Metric.GPU, "a", 0, 40, device="0"),
        series(Metric.GPU, "a", 20, 60, device="1"),
        series(Metric.GPU_ENERGY, "a", 100, 200, device="0"),
        series(Metric.GPU_ENERGY, "a", 50, 150, device="1"),
    )
)


def test_gpus_of_a_node_are_averaged_and_their_energy_is_added() -> None:
    """A level of two devices is their mean, an amount is their sum; the peak is the higher device's."""
    assert [(point.value, point.peak) for point in TWO_NODES.by_node(Metric.GPU)["a"]] == [(10, 21), (50, 61)]
    assert [point.value for point in TWO_NODES.by_node(Metric.GPU_ENERGY)["a"]] == [150, 350]
    assert TWO_NODES.by_node(Metric.CPU).keys() == {"a", "b"}


def test_a_summary_has_means_peaks_and_sums() -> None:
    """Percentages are means over nodes and time, memory is the highest use, and energy is the total."""
    found = summary(TWO_NODES)
    assert found is not None
    assert (found.nodes, found.cpu, found.memory, found.memory_in_all) == (2, 55, 3001, 56_001)
    assert (found.gpus, found.gpu, found.gpu_energy) == (2, 30, 500)
    assert (found.cores, found.gpu_memory) == (None, None)
    assert found.until == BEGIN + timedelta(minutes=1)


def test_nothing_measured_is_no_summary() -> None:
    """A run that was too short to be measured has no numbers, rather than zeros."""
    assert summary(NodeUsage()) is None
    assert NodeUsage().average(Metric.CPU) is None


def test_usage_between_two_moments_has_only_their_samples() -> None:
    later = TWO_NODES.between(BEGIN + timedelta(minutes=1), BEGIN + timedelta(hours=1))
    assert [point.value for each in later.of(Metric.CPU) for point in each.points] == [20, 100]
    assert not TWO_NODES.between(BEGIN + timedelta(hours=1), BEGIN + timedelta(hours=2))


def test_jobs_of_one_run_are_put_together_by_node() -> None:
    """A node that two jobs used has one series, in order of time."""
    later = NodeUsage((NodeSeries(Metric.CPU, "a", "", (Measurement(BEGIN + timedelta(minutes=5), 7, 8),)),))
    (found,) = together([later, NodeUsage((series(Metric.CPU, "a", 10, 20),))]).series
    assert [point.value for point in found.points] == [10, 20, 7]


NUMBERS = st.integers(0, 10**9).map(lambda n: n / 1000)
POINTS = st.builds(Measurement, st.integers(0, 10**5).map(lambda n: BEGIN + timedelta(minutes=n)), NUMBERS, NUMBERS)
KEYS = st.tuples(st.sampled_from(list(Metric)), st.sampled_from("ab"), st.sampled_from(["", "0"]))


@given(st.dictionaries(KEYS, st.lists(POINTS, min_size=1, max_size=5, unique_by=lambda point: point.at), max_size=8))
def test_rows_hold_all_that_is_known(found: dict[tuple[Metric, str, str], list[Measurement]]) -> None:
    """Any usage is the same after it was written as rows and read again."""
    order = sorted(found, key=lambda key: (list(Metric).index(key[0]), key[1:]))
    usage = NodeUsage(tuple(NodeSeries(*key, tuple(sorted(found[key], key=lambda point: point.at))) for key in order))
    assert of_rows(rows(usage)) == usage


def test_rows_of_a_later_version_are_read() -> None:
    """An unknown metric is skipped; a row without a time is refused."""
    listed = [{"time": 0, "node": "a", "device": "", "cpu": [1, 2], "water": [3, 4]}]
    assert [each.metric for each in of_rows(listed).series] == [Metric.CPU]
    with pytest.raises(KeyError):
        of_rows([{"node": "a", "device": ""}])

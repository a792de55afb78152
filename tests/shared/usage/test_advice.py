"""Advice about a smaller machine: only with evidence, and only for a machine that fits the measured use."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.jobs.vm_size import SIZES, known
from shared.usage.advice import SPARE, Advice, advice
from shared.usage.model import Measurement, Metric, NodeSeries, NodeUsage, summary
from shared.usage.words import energy

BEGIN = datetime(2026, 11, 28, tzinfo=UTC)
PRICES = {  # dollars an hour, dedicated, eastus
    "Standard_NC4as_T4_v3": 0.526,
    "Standard_NC64as_T4_v3": 4.352,
    "Standard_NC24ads_A100_v4": 3.673,
    "Standard_NC96ads_A100_v4": 14.692,
    "Standard_D2_v3": 0.096,
    "Standard_D4_v3": 0.192,
    "Standard_E16_v3": 1.064,
}


def used(minutes: int = 30, **values: float) -> NodeUsage:
    """Return the use of one node; each metric without a device is constant."""
    times = [BEGIN + timedelta(minutes=n) for n in range(minutes)]
    return NodeUsage(
        tuple(
            NodeSeries(
                Metric(name), "n", "0" if name.startswith("gpu") else "", tuple(Measurement(at, v, v) for at in times)
            )
            for name, v in values.items()
        )
    )


def advised(present: str, usage: NodeUsage) -> Advice | None:
    found = summary(usage)
    assert found is not None
    return advice(usage, found, present, PRICES.get)


def test_a_machine_that_is_hardly_used_has_a_smaller_one() -> None:
    """One of four GPUs at 12 percent and 3 of 440 GB fit a machine with one GPU, at an eighth of the price."""
    found = advised("Standard_NC64as_T4_v3", used(memory=3000, cores=1.2, gpu=3, gpu_memory=2000))
    assert found is not None
    assert str(found) == (
        "It used 3 of 472 GB and 12 % of one GPU of 4: "
        "Standard_NC4as_T4_v3 would do, for $0.53 an hour instead of $4.35."
    )


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"memory": 40, "cores": 0.03, "gpu": 0.2, "gpu_memory": 20}, "less than 1 of 472 GB and less than 1 % of one"),
        ({"memory": 40, "cores": 0.03, "gpu": 0, "gpu_memory": 20}, "less than 1 of 472 GB and 0 % of one"),
        ({"memory": 1600, "cores": 1.2, "gpu": 5, "gpu_memory": 2000}, "2 of 472 GB and 20 % of one GPU of 4"),
    ],
)
def test_a_small_use_is_not_called_nothing(values: dict[str, float], words: str) -> None:
    """A use that would round to 0 is `less than 1`."""
    found = advised("Standard_NC64as_T4_v3", used(30, **values))
    assert words in str(found)


def test_a_slower_gpu_must_be_fast_enough() -> None:
    """10 percent of an A100 are half of a T4; 40 percent are more than all of it."""
    light = advised("Standard_NC24ads_A100_v4", used(memory=3000, cores=1.2, gpu=10, gpu_memory=2000))
    assert light is not None
    assert light.vm_size == "Standard_NC4as_T4_v3"
    assert advised("Standard_NC24ads_A100_v4", used(memory=3000, cores=1.2, gpu=40, gpu_memory=2000)) is None


def test_a_gpu_that_nobody_used_is_not_needed() -> None:
    found = advised("Standard_NC24ads_A100_v4", used(memory=3000, cores=1.2, gpu=0, gpu_memory=5))
    assert found is not None
    assert found.vm_size == "Standard_D2_v3"


@pytest.mark.parametrize(
    "usage",
    [
        used(minutes=5, memory=3000, cores=1.2),  # too short
        used(memory=3000),  # processors were not measured
        used(memory=100_000, cores=12),  # the machine is used
    ],
)
def test_without_evidence_there_is_no_advice(usage: NodeUsage) -> None:
    assert advised("Standard_E16_v3", usage) is None


def test_a_machine_without_a_price_or_out_of_the_table_gets_none() -> None:
    usage = used(memory=3000, cores=1)
    assert advised("Standard_E8_v3", usage) is None
    assert advised("Standard_Z9", usage) is None


@given(
    st.sampled_from(sorted(PRICES)),
    st.floats(1, 500_000),
    st.floats(0.01, 64),
    st.floats(0, 100),
    st.floats(0, 80_000),
)
def test_what_is_advised_fits(present: str, memory: float, cores: float, gpu: float, gpu_memory: float) -> None:
    """The advised machine is cheaper than the current one, not retired, and has a quarter more memory than was ever
    used."""
    found = advised(present, used(memory=memory, cores=cores, gpu=gpu, gpu_memory=gpu_memory))
    if found is None:
        return
    size = known(found.vm_size)
    assert size is not None
    assert not size.instead
    assert found.dollars < found.present_dollars
    assert memory * SPARE <= size.memory * 1024**3 / 1e6 + 1
    assert SIZES[present].gpus or not size.gpus


def test_energy_is_told_in_watt_hours() -> None:
    assert energy(3600.0) == "1 Wh"
    assert energy(7.2e6) == "2.00 kWh"

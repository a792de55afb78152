"""Early values of a sweep's trials: how far they predict the result, and which trials asha stops."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from scipy.stats import spearmanr

from shared.jobs.search import ASHA, Parameter, Stopping, Sweep
from shared.sweeps.decide import losers
from shared.sweeps.model import Trial, TrialState
from shared.sweeps.trust import (
    MORE_WITNESSES,
    PRIOR,
    WITNESSES,
    in_words,
    is_witness,
    part_to_stop,
    percentile,
    rank_correlation,
    trust,
    whole_length,
)

ASKED = Stopping(ASHA)
SWEEP = Sweep({"lr": Parameter("uniform", (), 0.0, 1.0)}, "accuracy", stopping=ASKED)


def completed(count: int, sign: int, length: int = 27) -> list[Trial]:
    """Return trials whose early values rise or fall with the final value."""
    curves = [[sign * n / 100] * (length - 1) + [1 + n / 100] for n in range(count)]
    return [Trial(n, {"lr": 0.5}, TrialState.COMPLETED, curve) for n, curve in enumerate(curves)]


def running(number: int, values: list[float]) -> Trial:
    return Trial(number, {"lr": 0.5}, TrialState.RUNNING, values)


@pytest.mark.parametrize("seed", range(5))
def test_the_rank_correlation_is_scipys(seed: int) -> None:
    """This includes ties; the correlation is 0 when one side is constant."""
    dice = random.Random(seed)
    ones, others = ([dice.randrange(8) / 8 for _ in range(30)] for _ in range(2))
    assert rank_correlation(ones, others) == pytest.approx(spearmanr(ones, others).statistic)
    assert rank_correlation([1.0, 1.0], [0.0, 1.0]) == rank_correlation([1.0], [1.0]) == 0.0


def test_trust_is_earned() -> None:
    """There is no trust without a completed trial; trust rises with trials that agree, and falls with the others."""
    assert trust(SWEEP, [running(0, [0.1] * 9)]) == {}
    for sign in (1, -1):
        few, many = trust(SWEEP, completed(2, sign)), trust(SWEEP, completed(30, sign))
        assert list(many) == [2, 6, 18]
        assert all(sign * (many[rung] - few[rung]) > 0 for rung in many)
    assert trust(SWEEP, completed(30, 1))[2] > 0.8
    assert trust(SWEEP, completed(30, -1))[18] < -0.5
    assert trust(SWEEP, completed(1, 1))[18] < PRIOR
    assert whole_length(completed(3, 1)) == 27


def test_trust_is_told_in_words() -> None:
    """The text names each rung and its completed trials; it is empty without asha, or before a trial is completed."""
    assert in_words(SWEEP, completed(30, 1)) == (
        "Trust in early values, from -1 to 1: 0.9 after 2 values, 0.9 after 6 values, 0.9 after 18 values; "
        "by 30 completed trials."
    )
    assert in_words(SWEEP, completed(1, 1)).endswith("; by 1 completed trial.")
    assert in_words(SWEEP, [running(0, [0.5])]) == in_words(replace(SWEEP, stopping=None), completed(9, 1)) == ""


def test_fewer_are_stopped_where_early_values_say_less() -> None:
    """No trial is stopped without a correlation, most with a full one; an earlier rung stops more."""
    parts = [part_to_stop(rho, 5, 20) for rho in range(-10, 21)]
    assert parts == sorted(parts)
    assert (parts[0], parts[10]) == (0.0, 0.0)
    assert parts[-1] == 0.8
    assert part_to_stop(14, 80, 20) <= part_to_stop(14, 5, 20)


def test_asha_stops_the_worst_of_a_rung_once() -> None:
    """Before any trial is completed, the best third continues. A trial is not compared again on its way to the next
    rung."""
    before = [running(n, [n / 10] * 2) for n in range(1, 10)]
    assert sorted(losers(SWEEP, before)) == [1, 2, 3, 4, 5, 6]
    assert losers(SWEEP, [running(1, [0.0] * 4), *before[3:]]).keys() == {4, 5, 6, 7}
    assert (
        "at interval 2 it is better than 0 % of the other trials; the last 67 % are stopped"
        in (losers(SWEEP, before)[1])
    )


def test_asha_stops_nobody_where_early_values_mislead() -> None:
    """When completed trials had reversed early values, even the last trial at a rung continues."""
    late = [running(101, [-1.0, -1.0]), running(102, [0.9, 0.9])]
    assert losers(SWEEP, [*completed(9, -1), *late]) == {}
    assert list(losers(SWEEP, [*completed(9, 1), *late])) == [101]


def test_some_trials_run_to_the_end() -> None:
    """These are the first trial and some others, more of them while early values are not trusted."""
    assert is_witness(ASKED, {}, running(0, [0.0]))
    assert not is_witness(ASKED, {}, running(MORE_WITNESSES, [0.0]))
    trusted, doubted = {2: 0.7, 6: 0.9}, {2: 0.9, 6: 0.2}
    for number in range(1, 60):
        trial = running(number, [0.0])
        assert is_witness(ASKED, trusted, trial) == (number % WITNESSES == 0)
        assert is_witness(ASKED, doubted, trial) == (number % MORE_WITNESSES == 0)
    worst = running(WITNESSES, [-5.0, -5.0])
    assert losers(SWEEP, [*completed(9, 1), worst]) == {}


def test_a_percentile_counts_the_others() -> None:
    """The percentile goes from 0 for the lowest value to 1 for the highest; equal values share the middle."""
    assert [percentile([1.0, 2.0, 3.0], each) for each in (1.0, 2.0, 3.0)] == [0.0, 0.5, 1.0]
    assert percentile([1.0, 1.0, 1.0], 1.0) == 0.5
    assert percentile([1.0], 1.0) == 1.0

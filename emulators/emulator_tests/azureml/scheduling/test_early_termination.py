"""The three policies end the trials that Azure ML's page describes."""

from __future__ import annotations

import pytest

from emulators.azureml.bodies.sweep_body import Policy
from emulators.azureml.scheduling.early_termination import to_end

BANDIT = Policy("bandit", slack_factor=0.2)
# The page's example: the best has 0.8 at the interval, so 0.8 / 1.2 = 0.67 is allowed.
TOLD = {0: [0.5, 0.8], 1: [0.4, 0.66], 2: [0.4, 0.67], 3: [0.3]}


@pytest.mark.parametrize(
    ("policy", "maximize", "told", "ended"),
    [
        (Policy("bandit", interval=2, slack_factor=0.2), True, TOLD, {1}),
        (Policy("bandit", interval=2, slack_amount=0.1), True, TOLD, {1, 2}),
        (Policy("bandit", interval=1, slack_factor=0.2), True, TOLD, {1, 2, 3}),  # at interval 1 0.42 is allowed
        (Policy("bandit", interval=1, delay=2, slack_factor=0.2), True, TOLD, {1}),
        (Policy("bandit", slack_factor=0.5), False, {0: [1.0], 1: [1.4], 2: [1.6]}, {2}),
        (Policy("medianstopping"), False, {0: [1.0], 1: [2.0], 2: [3.0]}, {2}),
        (Policy("medianstopping", interval=2), True, {0: [1.0, 1.0], 1: [0.0, 5.0], 2: [0.0, 0.5]}, {2}),
        (Policy("truncationselection", percentage=50), True, {n: [float(n)] for n in range(4)}, {0, 1}),
        (Policy("truncationselection", percentage=20), False, {n: [float(n)] for n in range(5)}, {4}),
        (Policy("truncationselection", percentage=20), False, {n: [float(n)] for n in range(4)}, set()),
    ],
)
def test_who_is_ended(policy: Policy, maximize: bool, told: dict[int, list[float]], ended: set[int]) -> None:
    """Trials are compared at the same interval, by the values reported up to it."""
    assert set(to_end(policy, maximize, told, set(told), {})) == ended


def test_an_interval_is_judged_once() -> None:
    """Each interval is evaluated once, and a trial without a node is not ended."""
    policy = Policy("bandit", slack_factor=0.2)
    assert to_end(policy, True, TOLD, {0, 1, 2, 3}, {0: 2, 1: 2, 2: 2, 3: 1}) == {}
    assert set(to_end(policy, True, TOLD, {3}, {})) == {3}

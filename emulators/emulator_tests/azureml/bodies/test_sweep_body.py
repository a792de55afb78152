"""A sweep's body is read completely, and each expression of its search space yields values as in Azure ML."""

from __future__ import annotations

import math
import statistics
from typing import Any

import pytest

from emulators.azureml.bodies import sampled, sweep_body
from emulators.azureml.bodies.sweep_body import Parameter
from emulators.azureml.kernel.errors import BadRequest

GOOD: dict[str, Any] = {
    "jobType": "Sweep",
    "searchSpace": {"lr": ["uniform", [0.1, 0.9]], "kind": ["choice", [["a", 2, True]]]},
    "samplingAlgorithm": {"samplingAlgorithmType": "Random", "rule": "Sobol", "seed": 3},
    "objective": {"goal": "Minimize", "primaryMetric": "loss"},
    "limits": {"maxTotalTrials": 6, "maxConcurrentTrials": 9, "timeout": "PT2H", "trialTimeout": "PT10M"},
    "trial": {"command": "x ${{search_space.lr}} ${{inputs.kind}}", "environmentId": "azureml:e:1"},
}


def test_a_sweep_is_read() -> None:
    """The kind of sampling, the objective and the limits are read. Concurrent trials are at most the total number
    of trials."""
    spec = sweep_body.parse("s", GOOD)
    assert (spec.sampling, spec.seed, spec.metric, spec.maximize) == ("sobol", 3, "loss", False)
    assert (spec.most_trials, spec.at_once, spec.timeout) == (6, 6, 7200)
    assert spec.space == {
        "lr": Parameter("uniform", (0.1, 0.9)),
        "kind": Parameter("choice", values=("a", 2, True)),
    }


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"searchSpace": {}}, "searchSpace is empty"),
        ({"searchSpace": {"x": ["uniform", [1]]}}, "searchSpace.x: uniform has the numbers min_value, max_value"),
        ({"searchSpace": {"x": ["uniform", [2, 1]]}}, "min_value 2 is above max_value 1"),
        ({"searchSpace": {"x": ["normal", [0, 0]]}}, "sigma is 0"),
        ({"searchSpace": {"x": ["quniform", [0, 1, 0]]}}, "q is 0"),
        ({"searchSpace": {"x": ["randint", [0]]}}, "upper end of randint is 0"),
        ({"searchSpace": {"x": ["zipf", [1]]}}, "'zipf' is not known; choose choice, "),
        ({"searchSpace": {"x": ["choice", [[{"a": 1}]]]}}, "spaces within it"),
        ({"searchSpace": {"x": 5}}, "must be a kind with its numbers"),
        ({"samplingAlgorithm": {"samplingAlgorithmType": "Grid"}}, "grid sampling takes no uniform; it takes choice"),
        ({"samplingAlgorithm": {"samplingAlgorithmType": "Magic"}}, "choose bayesian, grid, random, sobol"),
        ({"objective": {"goal": "Win", "primaryMetric": "x"}}, "choose Minimize or Maximize"),
        ({"limits": {"maxTotalTrials": 2000}}, "at most 1000"),
        ({"earlyTermination": {"policyType": "Bandit"}}, "either a slackFactor or a slackAmount"),
        ({"earlyTermination": {"policyType": "TruncationSelection"}}, "must be 1 to 99"),
        ({"earlyTermination": {"policyType": "Coin"}}, "'coin' is not known"),
    ],
)
def test_what_cannot_be_is_refused(change: dict[str, Any], words: str) -> None:
    """The refusal has the error, the value, and the allowed values."""
    with pytest.raises(BadRequest, match=words):
        sweep_body.parse("s", {**GOOD, **change})


@pytest.mark.parametrize(
    ("parameter", "drawn", "value"),
    [
        (Parameter("choice", values=("a", "b")), 1, "b"),
        (Parameter("randint", (5,)), 3, 3),
        (Parameter("uniform", (0, 1)), 0.25, 0.25),
        (Parameter("quniform", (0, 10, 4)), 5.9, 4),
        (Parameter("loguniform", (0, 1)), 0.5, math.exp(0.5)),
        (Parameter("qloguniform", (0, 5, 2)), 3.0, 20),
        (Parameter("normal", (3, 2)), 0.5, 3),
        (Parameter("qnormal", (3, 2, 2)), 0.9, 6),
        (Parameter("lognormal", (1, 2)), 0.5, math.e),
        (Parameter("qlognormal", (1, 2, 0.5)), 0.5, 2.5),
    ],
)
def test_values_of_each_kind(parameter: Parameter, drawn: float, value: object) -> None:
    """min_value and max_value of loguniform are logarithms. The q kinds are rounded to multiples of q."""
    assert sampled.value(parameter, drawn) == pytest.approx(value)


def test_normal_values_are_normal() -> None:
    """Uniform draws become values with the requested mean and standard deviation."""
    drawn = [sampled.value(Parameter("normal", (5, 2)), (n + 0.5) / 1000) for n in range(1000)]
    numbers = [float(value) for value in drawn if isinstance(value, float)]
    assert statistics.fmean(numbers) == pytest.approx(5, abs=0.01)
    assert statistics.stdev(numbers) == pytest.approx(2, abs=0.02)


def test_a_trial_is_a_command_job_with_the_values() -> None:
    """A trial's search_space placeholders are replaced, and each value is also an input. Outputs with the same path
    get separate folders."""
    body = {**GOOD, "outputs": {"m": {"uri": "azureml://datastores/d/paths/p/", "assetName": "n"}}}
    trial = sampled.trial("s", 4, body, {"lr": 0.5, "kind": "a"})
    assert trial["command"] == "x 0.5 ${{inputs.kind}}"
    assert trial["inputs"]["kind"] == {"jobInputType": "literal", "value": "a"}
    assert trial["limits"]["timeout"] == "PT10M"
    assert trial["outputs"] == {"m": {"uri": "azureml://datastores/d/paths/p/${{name}}/"}}
    assert trial["displayName"] == "s_4"

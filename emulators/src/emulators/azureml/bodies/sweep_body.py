"""Parses a sweep job's REST body: its search space, sampling, objective and limits. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from emulators.azureml.bodies.job_body import JOB_NAME, check_facts
from emulators.azureml.kernel import checks
from emulators.azureml.kernel.checks import mapping
from emulators.azureml.kernel.errors import BadRequest, among
from emulators.azureml.kernel.models import Json

MOST_TRIALS = 1000
# The numbers of each kind of expression, in the order in which MLClient sends them.
# https://learn.microsoft.com/azure/machine-learning/reference-yaml-job-sweep#parameter-expressions
NUMBERS = {
    "uniform": ("min_value", "max_value"),
    "quniform": ("min_value", "max_value", "q"),
    "loguniform": ("min_value", "max_value"),
    "qloguniform": ("min_value", "max_value", "q"),
    "normal": ("mu", "sigma"),
    "qnormal": ("mu", "sigma", "q"),
    "lognormal": ("mu", "sigma"),
    "qlognormal": ("mu", "sigma", "q"),
    "randint": ("upper",),
}
SAMPLING = {
    "random": frozenset({"choice", *NUMBERS}),
    "sobol": frozenset({"choice", *NUMBERS}),
    "grid": frozenset({"choice"}),
    "bayesian": frozenset({"choice", "uniform", "quniform"}),
}
POLICIES = ("bandit", "medianstopping", "truncationselection")


@dataclass(frozen=True)
class Parameter:
    """A dimension of the search space: a kind of NUMBERS with its numbers, or a `choice` of values."""

    kind: str
    numbers: tuple[float, ...] = ()
    values: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Policy:
    """The rule that stops poor trials early. An interval is the number of a trial's reports of the primary metric."""

    kind: str  # one of POLICIES
    interval: int = 1
    delay: int = 0
    slack_factor: float = 0.0
    slack_amount: float = 0.0
    percentage: int = 0


@dataclass(frozen=True)
class SweepSpec:
    """A sweep. `trial`, `inputs` and `outputs` are REST bodies. Times are in seconds."""

    space: Mapping[str, Parameter]
    sampling: str  # one of SAMPLING
    seed: int | None
    metric: str
    maximize: bool
    most_trials: int
    at_once: int
    timeout: float | None
    trial_timeout: str | None
    policy: Policy | None
    trial: Json
    compute: str | None
    inputs: Json
    outputs: Json

    def better(self, one: float, other: float) -> bool:
        return one > other if self.maximize else one < other


def parse(name: str, properties: Json) -> SweepSpec:
    """Read the `properties` of a sweep job. Raises BadRequest with the error and an allowed value."""
    if not JOB_NAME.fullmatch(name):
        raise BadRequest(f"Job name {name!r}: use letters, digits, '-' and '_', at most 255 of them.")
    check_facts(properties)
    sampling, seed = _sampling(mapping(properties, "samplingAlgorithm"))
    space = {key: _parameter(key, value, sampling) for key, value in mapping(properties, "searchSpace").items()}
    if not space:
        raise BadRequest("The sweep's searchSpace is empty: name at least one parameter, such as ['uniform', [0, 1]].")
    goal, metric = _objective(mapping(properties, "objective"))
    limits = mapping(properties, "limits")
    most = checks.int32(limits, "maxTotalTrials", MOST_TRIALS, 1)
    if most > MOST_TRIALS:
        raise BadRequest(f"limits.maxTotalTrials is {most}; at most {MOST_TRIALS} trials are in a sweep.")
    checks.duration(limits, "trialTimeout", "limits.")
    return SweepSpec(
        space=space,
        sampling=sampling,
        seed=seed,
        metric=metric,
        maximize=goal == "maximize",
        most_trials=most,
        at_once=min(most, checks.int32(limits, "maxConcurrentTrials", most, 1)),
        timeout=checks.duration(limits, "timeout", "limits."),
        trial_timeout=limits.get("trialTimeout"),
        policy=_policy(mapping(properties, "earlyTermination")),
        trial=mapping(properties, "trial"),
        compute=properties.get("computeId"),
        inputs=mapping(properties, "inputs"),
        outputs=mapping(properties, "outputs"),
    )


def _sampling(body: Json) -> tuple[str, int | None]:
    kind = str(body.get("samplingAlgorithmType") or "").lower()
    rule = str(body.get("rule") or "random").lower()
    kind = rule if kind == "random" else kind
    if kind not in SAMPLING:
        raise BadRequest(f"samplingAlgorithm {kind!r:.80} is not known; choose {among(SAMPLING)}.")
    return kind, checks.int32(body, "seed", 0, 0) if body.get("seed") is not None else None


def _parameter(name: str, value: Any, sampling: str) -> Parameter:
    what = f"searchSpace.{name}"
    if not isinstance(value, list) or len(value) != 2 or not isinstance(value[1], list):
        raise BadRequest(f"{what} is {value!r:.80}; it must be a kind with its numbers, such as ['uniform', [0, 1]].")
    kind, given = str(value[0]).lower(), value[1]
    if kind not in ("choice", *NUMBERS):
        raise BadRequest(f"{what}: {kind!r:.80} is not known; choose {among(['choice', *NUMBERS])}.")
    if kind not in SAMPLING[sampling]:
        raise BadRequest(f"{what}: {sampling} sampling takes no {kind}; it takes {among(SAMPLING[sampling])}.")
    if kind == "choice":
        return _choice(what, given)
    numbers = tuple(float(number) for number in given if type(number) in (int, float))
    if len(numbers) != len(given) or len(numbers) != len(NUMBERS[kind]):
        raise BadRequest(f"{what}: {kind} has the numbers {', '.join(NUMBERS[kind])}, not {given!r:.80}.")
    _check_numbers(what, kind, numbers)
    return Parameter(kind, numbers)


def _choice(what: str, given: list[Any]) -> Parameter:
    values = given[0] if len(given) == 1 and isinstance(given[0], list) else given
    if not values:
        raise BadRequest(f"{what}: a choice needs values.")
    if any(isinstance(each, dict | list) for each in values):
        raise BadRequest(f"{what}: its values are texts, numbers or truth values; spaces within it are not taken here.")
    return Parameter("choice", values=tuple(values))


def _check_numbers(what: str, kind: str, numbers: tuple[float, ...]) -> None:
    if kind == "randint" and (numbers[0] < 1 or numbers[0] != int(numbers[0])):
        raise BadRequest(
            f"{what}: the upper end of randint is {numbers[0]:g}; it must be a whole number of at least 1."
        )
    if kind.endswith("uniform") and numbers[0] > numbers[1]:
        raise BadRequest(f"{what}: min_value {numbers[0]:g} is above max_value {numbers[1]:g}.")
    if kind.endswith("normal") and numbers[1] <= 0:
        raise BadRequest(f"{what}: sigma is {numbers[1]:g}; it must be above 0.")
    if kind.startswith("q") and numbers[-1] <= 0:
        raise BadRequest(f"{what}: q is {numbers[-1]:g}; it must be above 0.")


def _objective(body: Json) -> tuple[str, str]:
    goal = str(body.get("goal") or "").lower()
    if goal not in ("minimize", "maximize"):
        raise BadRequest(f"objective.goal is {goal!r:.80}; choose Minimize or Maximize.")
    return goal, checks.text(body, "primaryMetric")


def _policy(body: Json) -> Policy | None:
    if not body.get("policyType"):
        return None
    kind = str(body["policyType"]).lower().replace("_", "")
    if kind not in POLICIES:
        raise BadRequest(f"earlyTermination {kind!r:.80} is not known; choose {among(POLICIES)}.")
    policy = Policy(
        kind,
        interval=max(1, checks.int32(body, "evaluationInterval", 1, 0)),
        delay=checks.int32(body, "delayEvaluation", 0, 0),
        slack_factor=_number(body, "slackFactor"),
        slack_amount=_number(body, "slackAmount"),
        percentage=checks.int32(body, "truncationPercentage", 0, 0),
    )
    if kind == "bandit" and bool(policy.slack_factor) == bool(policy.slack_amount):
        raise BadRequest("earlyTermination: bandit has either a slackFactor or a slackAmount above 0.")
    if kind == "truncationselection" and not 1 <= policy.percentage <= 99:
        raise BadRequest(f"earlyTermination: truncationPercentage is {policy.percentage}; it must be 1 to 99.")
    return policy


def _number(body: Json, key: str) -> float:
    value = body.get(key) or 0
    if type(value) not in (int, float) or value < 0:
        raise BadRequest(f"{key} is {value!r:.80}; it must be a number of at least 0.")
    return float(value)

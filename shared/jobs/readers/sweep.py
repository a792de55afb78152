"""Read sweeps: Azure ML's sweep job, and our short form, which can be added to any job. Pure.

    inputs: {lr: 0.001..0.1, batch_size: "32,64,128"}
    sweep: {trials: 20, metric: test_accuracy, stop: asha, budget: 5}

https://learn.microsoft.com/azure/machine-learning/reference-yaml-job-sweep
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from shared.jobs.metric_goal import Goal, goal_of
from shared.jobs.problem import Problem
from shared.jobs.readers.component import as_job, is_component
from shared.jobs.search import (
    ASHA,
    BANDIT,
    BAYESIAN,
    CHOICE,
    GRID,
    KINDS,
    MOST_TRIALS,
    NORMAL,
    POLICIES,
    RANDINT,
    RANDOM,
    SAMPLINGS,
    SOBOL,
    TRUNCATION,
    UNIFORM,
    Drawn,
    Parameter,
    Stopping,
    Sweep,
)

LEAST_FACTOR = 10  # minimum factor between the ends of a range that is drawn on a log scale
IN_TRIAL = ("code", "command", "environment", "environment_variables", "distribution", "resources")
_ONLY_SWEEPS = ("trial", "search_space", "sampling_algorithm", "objective", "early_termination", "limits", "type")
_FETCH = "save it (az ml component show) beside the job, and write trial: ./train.yml."
_SPACE = re.compile(r"\$\{\{\s*search_space\.([\w-]+)\s*\}\}")
_NUMBER = r"[+-]?(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)?"
_RANGE = re.compile(rf"({_NUMBER})\.\.({_NUMBER})")
_SHORT = {"trials", "metric", "goal", "stop", "budget", "at_once", "sampling", "seed", "timeout", "search_space"}
Json = Mapping[str, Any]


class _Bad(Exception):
    def __init__(self, path: str, message: str) -> None:
        super().__init__(message)
        self.problem = Problem(path, message, "bad_sweep")


def read_published(document: Json) -> tuple[dict[str, Any], Sweep | None, tuple[Problem, ...]]:
    """The command job of each trial, the sweep, and the problems."""
    try:
        sweep = _published(document)
        limits, inputs = _mapping(document, "limits"), document.get("inputs") or {}
        trial, inputs = _trial(document, inputs, sweep)
    except _Bad as exc:
        return {}, None, (exc.problem,)
    own = {key: value for key, value in document.items() if key not in _ONLY_SWEEPS and value is not None}
    job = {**trial, **own, "outputs": _outputs(trial, own)}
    job["command"] = _SPACE.sub(r"${{inputs.\1}}", str(trial.get("command") or ""))
    job["inputs"] = {**inputs, **placeholders(sweep)} if isinstance(inputs, Mapping) else inputs
    if limits.get("trial_timeout") is not None:
        job["limits"] = {"timeout": limits["trial_timeout"]}
    return job, sweep, ()


def _trial(document: Json, inputs: Any, sweep: Sweep) -> tuple[dict[str, Any], Any]:
    """The command and the inputs of a trial, which is written inline or as a component."""
    if isinstance(trial := document.get("trial"), str):
        if trial.startswith("azureml:"):
            raise _Bad(
                "trial",
                f"is {trial!r:.80}, a registered component. Trainyard runs each trial as a run of its own: {_FETCH}",
            )
        raise _Bad("trial", f"is {trial!r:.80}, which was not sent with the job: write it here, or send its file.")
    trial = _mapping(document, "trial")
    if not is_component(trial) or not isinstance(inputs, Mapping):
        return dict(trial), inputs
    try:
        return as_job(trial, inputs, sweep.space)
    except ValueError as exc:
        raise _Bad("trial", str(exc)) from exc


def _outputs(trial: Json, own: Json) -> Any:
    """The component's outputs, overridden by the job's outputs."""
    declared, given = trial.get("outputs") or {}, own.get("outputs") or {}
    if not (isinstance(declared, Mapping) and isinstance(given, Mapping)):
        return given
    return {**declared, **{name: {**(declared.get(name) or {}), **(value or {})} for name, value in given.items()}}


def read_short(section: Any, inputs: Json) -> tuple[dict[str, Any], Sweep | None, tuple[Problem, ...]]:
    """The inputs without the searched ones, the sweep, and the problems."""
    try:
        return _short(section, inputs)
    except _Bad as exc:
        return dict(inputs), None, (exc.problem,)


def placeholders(sweep: Sweep) -> dict[str, Drawn]:
    """A value for each parameter of the search space: the job's inputs are complete before a draw."""
    return {name: next(iter(parameter.ends), parameter.first) for name, parameter in sweep.space.items()}


def range_of(text: Any) -> Parameter | None:
    """`0.001..0.1` or `32,64,128` as a parameter; None for any other text.

    A range over a factor of ten or more is drawn on a log scale. A range with whole ends yields whole numbers.
    """
    if isinstance(text, list | tuple) and len(text) > 1 and all(isinstance(each, str | int | float) for each in text):
        return Parameter(CHOICE, tuple(text))
    if not isinstance(text, str):
        return None
    if match := _RANGE.fullmatch(text.strip()):
        low, high = float(match[1]), float(match[2])
        whole = all(re.fullmatch(r"[+-]?\d+", end) for end in match.groups())
        return _between(low, high, whole) if low < high else None
    parts = [part.strip() for part in text.split(",")]
    return Parameter(CHOICE, tuple(_literal(part) for part in parts)) if len(parts) > 1 and all(parts) else None


def _check_ends(name: str, value: Any) -> None:
    """Raise _Bad for a range whose first end is not the lower one."""
    match = _RANGE.fullmatch(value.strip()) if isinstance(value, str) else None
    if match and float(match[1]) > float(match[2]):
        raise _Bad(name, f"is {value.strip()}, whose ends are in the wrong order; write {match[2]}..{match[1]}.")
    if match and float(match[1]) == float(match[2]):
        raise _Bad(
            name, f"is {value.strip()}, whose ends are equal; write the single value {match[1]}, or a wider range."
        )


def _between(low: float, high: float, whole: bool) -> Parameter:
    log = low > 0 and high / low >= LEAST_FACTOR
    ends = (math.log(low), math.log(high)) if log else (low, high)
    return Parameter(f"{'q' if whole else ''}{'log' if log else ''}uniform", (), *ends, 1.0 if whole else 0.0)


def _literal(text: str) -> Drawn:
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        if math.isfinite(number):
            return number
    return {"true": True, "false": False}.get(text.lower(), text)


def _short(section: Any, inputs: Json) -> tuple[dict[str, Any], Sweep, tuple[Problem, ...]]:
    if not isinstance(section, Mapping):
        raise _Bad("sweep", "must be a mapping, such as {trials: 20, metric: test_accuracy, stop: asha}.")
    if unknown := [key for key in section if key not in _SHORT]:
        raise _Bad(f"sweep.{unknown[0]}", f"is not known; there are {', '.join(sorted(_SHORT))}.")
    for name, value in (*inputs.items(), *(section.get("search_space") or {}).items()):
        _check_ends(name, value)
    space = {name: each for name, value in inputs.items() if (each := range_of(value))}
    for name, value in (section.get("search_space") or {}).items():
        space[name] = range_of(value) or _parameter(f"sweep.search_space.{name}", value)
    if not space:
        raise _Bad("sweep", "has no search space: give a parameter a range, 0.001..0.1, or values, 32,64,128.")
    metric = str(section.get("metric") or "")
    if not metric:
        raise _Bad(
            "sweep.metric", "is missing: name the metric that decides which trial is best, such as test_accuracy."
        )
    stop = section.get("stop")
    goal = _choice(section, "goal", ("maximize", "minimize"), "sweep.") or goal_of(metric)
    if goal is None:
        raise _Bad(
            "sweep.goal",
            f"is missing: it is unknown whether more or less {metric} is better; write maximize or minimize.",
        )
    most = _whole(section, "trials", 20, 1, MOST_TRIALS, "sweep.")
    sweep = Sweep(
        space=space,
        metric=metric,
        maximize=goal == Goal.MAXIMIZE,
        sampling=_choice(section, "sampling", SAMPLINGS, "sweep.") or BAYESIAN,
        seed=_seed(section, "sweep."),
        most_trials=most,
        at_once=min(most, _whole(section, "at_once", 4, 1, MOST_TRIALS, "sweep.")),
        timeout_seconds=_whole(section, "timeout", 0, 0, 10**8, "sweep."),
        budget=_positive(section, "budget", "sweep."),
        stopping=_policy({"type": stop} if isinstance(stop, str) else stop, "sweep.stop"),
    )
    _check_grid(sweep)
    return {name: value for name, value in inputs.items() if name not in space}, sweep, ()


def _published(document: Json) -> Sweep:
    space = _mapping(document, "search_space")
    objective, limits = _mapping(document, "objective"), _mapping(document, "limits")
    if not space:
        raise _Bad("search_space", "is empty: name at least one parameter, such as {type: uniform, min_value: 0, ...}.")
    if not (metric := str(objective.get("primary_metric") or "")):
        raise _Bad("objective.primary_metric", "is missing: name the metric that decides which trial is best.")
    named = document.get("sampling_algorithm") or RANDOM
    sampling = {"type": named} if isinstance(named, str) else named
    kind = SOBOL if str(sampling.get("rule") or "").lower() == SOBOL else str(sampling.get("type") or "").lower()
    most = _whole(limits, "max_total_trials", MOST_TRIALS, 1, MOST_TRIALS, "limits.")
    sweep = Sweep(
        space={str(name): _parameter(f"search_space.{name}", value) for name, value in space.items()},
        metric=metric,
        maximize=_choice(objective, "goal", ("maximize", "minimize"), "objective.") != "minimize",
        sampling=_choice({"type": kind}, "type", SAMPLINGS, "sampling_algorithm."),
        seed=_seed(sampling, "sampling_algorithm."),
        most_trials=most,
        at_once=min(most, _whole(limits, "max_concurrent_trials", min(most, 100), 1, MOST_TRIALS, "limits.")),
        timeout_seconds=_whole(limits, "timeout", 0, 0, 10**8, "limits."),
        budget=_positive(limits, "budget", "limits."),
        stopping=_policy(document.get("early_termination"), "early_termination"),
    )
    _check_grid(sweep)
    return sweep


def _parameter(path: str, body: Any) -> Parameter:
    if not isinstance(body, Mapping):
        raise _Bad(path, f"is {body!r:.80}; write a range, 0.001..0.1, values, 32,64,128, or {{type: uniform, ...}}.")
    kind = _choice(body, "type", KINDS, f"{path}.")
    if kind == CHOICE:
        values = body.get("values")
        if (
            not isinstance(values, list)
            or not values
            or not all(isinstance(each, str | int | float) for each in values)
        ):
            raise _Bad(f"{path}.values", "must be a list of texts, numbers or truth values.")
        return Parameter(CHOICE, tuple(values))
    step = _number(body, "q", path) if kind.startswith("q") else 0.0
    if kind == RANDINT:
        return _checked(path, Parameter(kind, (), _number(body, "upper", path)))
    ends = ("mu", "sigma") if kind in NORMAL else ("min_value", "max_value")
    return _checked(path, Parameter(kind, (), _number(body, ends[0], path), _number(body, ends[1], path), step))


def _checked(path: str, parameter: Parameter) -> Parameter:
    first, second = parameter.first, parameter.second
    if parameter.kind == RANDINT and (first < 1 or not first.is_integer()):
        raise _Bad(f"{path}.upper", f"is {first:g}; it must be a whole number from 1.")
    if parameter.kind in UNIFORM and first >= second:
        raise _Bad(f"{path}.min_value", f"is {first:g}, which is not below max_value, {second:g}.")
    if parameter.kind in UNIFORM and parameter.is_log and second > 700:
        raise _Bad(f"{path}.max_value", f"is {second:g}; it is the logarithm of the greatest value.")
    if parameter.kind in NORMAL and second <= 0:
        raise _Bad(f"{path}.sigma", f"is {second:g}; it must be above 0.")
    if parameter.kind.startswith("q") and parameter.step <= 0:
        raise _Bad(f"{path}.q", f"is {parameter.step:g}; it must be above 0.")
    return parameter


def _policy(described: Any, path: str) -> Stopping | None:
    if not described:
        return None
    if not isinstance(described, Mapping):
        raise _Bad(path, f"is {described!r:.80}; choose one of {', '.join(POLICIES)}.")
    kind = _choice(described, "type", POLICIES, f"{path}.")
    stopping = Stopping(
        kind,
        interval=_whole(described, "evaluation_interval", 1, 1, 10**6, f"{path}."),
        delay=_whole(described, "delay_evaluation", 0, 0, 10**6, f"{path}."),
        eta=_whole(described, "eta", 3, 2, 100, f"{path}."),
        slack_factor=_positive(described, "slack_factor", f"{path}."),
        slack_amount=_positive(described, "slack_amount", f"{path}."),
        percentage=_whole(described, "truncation_percentage", 0, 0, 99, f"{path}."),
    )
    if kind == BANDIT and bool(stopping.slack_factor) == bool(stopping.slack_amount):
        raise _Bad(
            path, "bandit has either a slack_factor or a slack_amount above 0: {type: bandit, slack_factor: 0.1}."
        )
    if kind == TRUNCATION and not stopping.percentage:
        raise _Bad(f"{path}.truncation_percentage", "must be a whole number from 1 to 99.")
    return stopping if kind == ASHA else replace(stopping, eta=Stopping.eta)


def _check_grid(sweep: Sweep) -> None:
    other = next((name for name, parameter in sweep.space.items() if parameter.kind != CHOICE), "")
    if sweep.sampling == GRID and other:
        raise _Bad(f"search_space.{other}", "is a range, which has no grid: give values, or choose another sampling.")


def _mapping(document: Json, key: str) -> Json:
    value = document.get(key) or {}
    if not isinstance(value, Mapping):
        raise _Bad(key, f"must be a mapping, it is a {type(value).__name__}.")
    return value


def _choice(section: Json, key: str, choices: Iterable[str], at: str) -> str:
    """One of the choices, in any case; '' if the key is missing."""
    value = section.get(key)
    if value is None:
        return ""
    text = str(value).lower()
    if text not in choices:
        raise _Bad(f"{at}{key}", f"is {value!r:.80}; choose one of {', '.join(choices)}.")
    return text


def _whole(section: Json, key: str, default: int, least: int, most: int, at: str) -> int:
    value = section.get(key, default)
    value = default if value is None else value
    number = _read(int, value)
    if number is None or isinstance(value, bool) or float(number) != float(value) or not least <= number <= most:
        raise _Bad(f"{at}{key}", f"is {value!r:.40}; use a whole number from {least} to {most}.")
    return int(number)


def _seed(section: Json, at: str) -> int | None:
    return None if section.get("seed") is None else _whole(section, "seed", 0, 0, 2**31 - 1, at)


def _positive(section: Json, key: str, at: str) -> float:
    value = section.get(key)
    number = 0.0 if value is None else _read(float, value)
    if number is None or isinstance(value, bool) or number < 0 or not math.isfinite(number):
        raise _Bad(f"{at}{key}", f"is {value!r:.40}; use a number from 0.")
    return float(number)


def _number(section: Json, key: str, path: str) -> float:
    number = _read(float, section.get(key))
    if number is None or isinstance(section.get(key), bool) or not math.isfinite(number):
        raise _Bad(f"{path}.{key}", f"is {section.get(key)!r:.40}; use a number.")
    return float(number)


def _read(kind: Callable[[Any], Any], value: Any) -> Any:
    try:
        return kind(value)
    except (TypeError, ValueError, OverflowError):
        return None

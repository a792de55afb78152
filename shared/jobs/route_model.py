"""The registered model for which a route's runs compete, with its rules, read from the routes file. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from shared.jobs.metric_goal import Goal
from shared.jobs.parameters import Parameters, all_converted, bad_values, unknown_names, unquoted
from shared.kernel.errors import BadSetting

MOST = 1e9
_KEY = re.compile(r"[0-9a-f]{64}")
_MODEL_NAME = re.compile(r"[a-z][a-z0-9-]{0,30}")


@dataclass(frozen=True)
class RouteModel:
    """The registered model for which a route's runs compete.

    A run becomes a version if its `metric` beats the champion's by at least `by`; `alias` then points at the new
    version. Without a champion, the first run with the metric wins. Without a `metric`, runs don't compete. `test` are
    parameters with which the route's job only tests the model from which it starts, so that a champion of other data
    can be measured on the challenger's data.

    `goal` is the direction of the metric; None: the trainer or the metric's name tells it. People need the role
    trainyard.coder to move an alias in `protect`. The alias moves only to a version with a passed attestation of each
    kind in `require`; `signers` has the SHA-256 of the public keys of programs whose attestations of a kind count. With
    `allow_code` a challenger may have files that run code when they are loaded, such as exported programs.
    """

    name: str
    metric: str = ""
    by: float = 0.0
    alias: str = "production"
    test: dict[str, Any] = field(default_factory=dict)
    goal: Goal | None = None
    protect: tuple[str, ...] = ()
    require: tuple[str, ...] = ()
    signers: dict[str, tuple[str, ...]] = field(default_factory=dict)
    allow_code: bool = False


MODEL_FORM = (
    "{name: churn, alias: production, challenger: {metric: auc, goal: maximize, by: 0.002, test: {epochs: 0}}, "
    "protect: [production], require: [approval, scan], signers: {scan: [SHA256 of a public key]}, allow_code: false}; "
    "only name is "
    "required, and in challenger only metric"
)


def read_model(section: Any, where: str, parameters: Parameters) -> RouteModel | None:
    """The `model` of a route with these parameters, or None. Raises BadSetting, with the expected form."""
    if section is None:
        return None
    challenger = section.get("challenger", {}) if isinstance(section, dict) else None
    if (
        not isinstance(challenger, dict)
        or not {"name"}
        <= set(section)
        <= {"name", "alias", "challenger", "protect", "require", "signers", "allow_code"}
        or not ("metric" in challenger or "challenger" not in section)
        or not set(challenger) <= {"metric", "by", "test", "goal"}
    ):
        raise BadSetting(f"{where}: model is {section!r}; write {MODEL_FORM}.")
    metric = str(challenger.get("metric", ""))
    names = (str(section["name"]), str(section.get("alias", "production")))
    if not all(_MODEL_NAME.fullmatch(name) for name in names) or ("challenger" in section and not metric):
        raise BadSetting(f"{where}: model is {section!r}; names are of small letters, digits and dashes.")
    by = challenger.get("by", 0)
    if isinstance(by, bool) or not isinstance(by, int | float) or not 0 <= by <= MOST:
        raise BadSetting(f"{where}: model.challenger.by is {by!r}; it must be a number from 0 to {MOST:g}.")
    return RouteModel(
        name=names[0],
        metric=metric,
        by=float(by),
        alias=names[1],
        test=_test(challenger.get("test", {}), where, parameters),
        goal=_goal(challenger.get("goal"), where),
        protect=_words(section, "protect", where),
        require=_words(section, "require", where),
        signers=_signers(section, where),
        allow_code=_flag(section, "allow_code", where),
    )


def _flag(section: dict[str, Any], key: str, where: str) -> bool:
    given = section.get(key, False)
    if not isinstance(given, bool):
        raise BadSetting(f"{where}: model.{key} is {given!r}; write true or false.")
    return given


def _goal(given: Any, where: str) -> Goal | None:
    if given is not None and given not in [*Goal]:
        raise BadSetting(f"{where}: model.challenger.goal is {given!r}; it must be {' or '.join(Goal)}.")
    return Goal(given) if given else None


def _signers(section: dict[str, Any], where: str) -> dict[str, tuple[str, ...]]:
    given = section.get("signers", {})
    required = section.get("require", [])
    if not isinstance(given, dict) or not all(
        kind in required and isinstance(keys, list) and all(isinstance(k, str) and _KEY.fullmatch(k) for k in keys)
        for kind, keys in given.items()
    ):
        raise BadSetting(
            f"{where}: model.signers is {given!r}; write a list of SHA-256 of public keys for a kind in model.require, "
            "such as {scan: [9f86...]}."
        )
    return {str(kind): tuple(keys) for kind, keys in given.items()}


def _words(section: dict[str, Any], key: str, where: str) -> tuple[str, ...]:
    given = section.get(key, [])
    if not isinstance(given, list) or not all(isinstance(each, str) and _MODEL_NAME.fullmatch(each) for each in given):
        raise BadSetting(f"{where}: model.{key} is {given!r}; write a list of names, such as [production].")
    return tuple(given)


def _test(given: Any, where: str, parameters: Parameters) -> dict[str, Any]:
    at = f"{where}: model.challenger.test"
    if not isinstance(given, dict):
        raise BadSetting(
            f"{at} is {given!r}; write the parameters with which the job only tests a model, {{epochs: 0}}."
        )
    for problem in (*unknown_names(parameters, given, at), *bad_values(parameters, given, at), *unquoted(given)):
        raise BadSetting(f"{problem.path} {problem.message}")
    return all_converted(parameters, given)

"""A route's rule for the data of its drops: whether bad data is refused, and the bounds of the check."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from shared.kernel.errors import BadSetting

BOUNDS = {  # key: (least, most)
    "sample": (1, 100_000),
    "broken": (0, 1),
    "balance": (1, 1e9),
    "few": (0, 1e9),
}


class CheckMode(StrEnum):
    """The strongest result of a check of a drop's data: a refusal, a warning, or no check at all."""

    REFUSE = "refuse"
    WARN = "warn"
    OFF = "off"


@dataclass(frozen=True)
class DataRule:
    """`bounds` replace the defaults of trainers/data_checks. `declared` is the kind of the data; {} stands for the
    trainer's kind.
    """

    mode: CheckMode = CheckMode.REFUSE
    bounds: Mapping[str, float] = field(default_factory=dict)
    declared: Mapping[str, Any] = field(default_factory=dict)


def read_rule(check: Any, declared: Any, where: str) -> DataRule:
    """Return the rule of a route's keys `check` and `data`. Raises BadSetting with the choices."""
    given = check if isinstance(check, dict) else {} if check is None else {"mode": check}
    mode, bounds = given.get("mode", "refuse"), {key: given[key] for key in given if key != "mode"}
    mode = "off" if mode is False else mode  # YAML reads a plain `off` as false
    if mode not in list(CheckMode):
        raise BadSetting(f"{where}: check is {mode!r}; choose {', '.join(CheckMode)}.")
    for key, value in bounds.items():
        least, most = BOUNDS.get(key, (0, 0))
        if key not in BOUNDS:
            raise BadSetting(f"{where}: check has the unknown key {key!r}; choose from mode, {', '.join(BOUNDS)}.")
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            raise BadSetting(f"{where}: check.{key} is {value!r}; it must be a number from {least:g} to {most:g}.")
    if declared is not None:
        check_declared(declared, where)
    return DataRule(CheckMode(mode), bounds, dict(declared or {}))


def check_declared(declared: Any, where: str) -> None:
    """Raise BadSetting for a declaration of data without a known kind, or with an option unknown to the kind."""
    if said := problem_of(declared):
        raise BadSetting(f"{where}: data: {said}.")


def problem_of(declared: Any, of_uploader: bool = False) -> str:
    """Return the mistake in a declaration of data, or ''.

    `of_uploader`: a drop's job file has the declaration. Then a regular expression is not allowed, because the app
    would match it, and some expressions need hours for a short text.
    """
    from trainers.data_checks import columns, kinds  # few routes declare their data

    if said := kinds.problem(declared):
        return str(said)
    if of_uploader and (name := next(columns.patterns(declared.get("columns")), "")):
        return f"columns.{name}: only routes.yaml can have a pattern; in a job file, use enum, format or minLength"
    return ""

"""The registered model for which a route's runs compete, read from the routes file. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from shared.jobs.parameters import Parameters, all_converted, bad_values, unknown_names, unquoted
from shared.kernel.errors import BadSetting

MOST = 1e9
_MODEL_NAME = re.compile(r"[a-z][a-z0-9-]{0,30}")


@dataclass(frozen=True)
class RouteModel:
    """The registered model for which a route's runs compete.

    A run becomes a version if its `metric` beats the champion's by at least `by`; `alias` then points at the new
    version. Without a champion, the first run with the metric wins. `test` are parameters with which the route's job
    only tests the model from which it starts, so that a champion of other data can be measured on the challenger's
    data.
    """

    name: str
    metric: str
    by: float = 0.0
    alias: str = "production"
    test: dict[str, Any] = field(default_factory=dict)


MODEL_FORM = (
    "{name: churn, alias: production, challenger: {metric: auc, by: 0.002, test: {epochs: 0}}}; "
    "alias, by and test may be left out"
)


def read_model(section: Any, where: str, parameters: Parameters) -> RouteModel | None:
    """The `model` of a route with these parameters, None without one. Raises BadSetting, with the expected form."""
    if section is None:
        return None
    challenger = section.get("challenger") if isinstance(section, dict) else None
    if (
        not isinstance(challenger, dict)
        or not {"name", "challenger"} <= set(section) <= {"name", "alias", "challenger"}
        or not {"metric"} <= set(challenger) <= {"metric", "by", "test"}
    ):
        raise BadSetting(f"{where}: model is {section!r}; write {MODEL_FORM}.")
    names = (str(section["name"]), str(section.get("alias", "production")), str(challenger["metric"]))
    if not all(_MODEL_NAME.fullmatch(name) for name in names[:2]) or not names[2]:
        raise BadSetting(f"{where}: model is {section!r}; names are of small letters, digits and dashes.")
    by = challenger.get("by", 0)
    if isinstance(by, bool) or not isinstance(by, int | float) or not 0 <= by <= MOST:
        raise BadSetting(f"{where}: model.challenger.by is {by!r}; it must be a number from 0 to {MOST:g}.")
    return RouteModel(names[0], names[2], float(by), names[1], _test(challenger.get("test", {}), where, parameters))


def _test(given: Any, where: str, parameters: Parameters) -> dict[str, Any]:
    at = f"{where}: model.challenger.test"
    if not isinstance(given, dict):
        raise BadSetting(f"{at} is {given!r}; write the parameters that let the job only test a model, {{epochs: 0}}.")
    for problem in (*unknown_names(parameters, given, at), *bad_values(parameters, given, at), *unquoted(given)):
        raise BadSetting(f"{problem.path} {problem.message}")
    return all_converted(parameters, given)

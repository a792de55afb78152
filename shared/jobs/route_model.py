"""The model that a route's runs challenge for, as the routes file says it. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from shared.kernel.errors import BadSetting

MOST = 1e9
_MODEL_NAME = re.compile(r"[a-z][a-z0-9-]{0,30}")


@dataclass(frozen=True)
class RouteModel:
    """The model that a route's runs challenge for: a run becomes a version if its `metric` beats the champion's by so
    much (`by`); then `alias` points at it. A metric without a champion wins."""

    name: str
    metric: str
    by: float = 0.0
    alias: str = "production"


MODEL_FORM = "{name: churn, alias: production, challenger: {metric: auc, by: 0.002}}; alias and by may be left out"


def read_model(section: Any, where: str) -> RouteModel | None:
    """The `model` of a route, None where it has none. Raises BadSetting, with the form."""
    if section is None:
        return None
    challenger = section.get("challenger") if isinstance(section, dict) else None
    if (
        not isinstance(challenger, dict)
        or not {"name", "challenger"} <= set(section) <= {"name", "alias", "challenger"}
        or not {"metric"} <= set(challenger) <= {"metric", "by"}
    ):
        raise BadSetting(f"{where}: model is {section!r}; write {MODEL_FORM}.")
    names = (str(section["name"]), str(section.get("alias", "production")), str(challenger["metric"]))
    if not all(_MODEL_NAME.fullmatch(name) for name in names[:2]) or not names[2]:
        raise BadSetting(f"{where}: model is {section!r}; names are of small letters, digits and dashes.")
    by = challenger.get("by", 0)
    if isinstance(by, bool) or not isinstance(by, int | float) or not 0 <= by <= MOST:
        raise BadSetting(f"{where}: model.challenger.by is {by!r}; it must be a number from 0 to {MOST:g}.")
    return RouteModel(names[0], names[2], float(by), names[1])

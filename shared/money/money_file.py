"""Read the money file: region, budgets, custom prices, and standing costs. money.yaml explains its keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from shared.kernel import yaml_files
from shared.kernel.errors import BadInput, BadSetting
from shared.kernel.names import NAME
from shared.kernel.operation import ROLES
from shared.kernel.parsing import plain
from shared.money.policy import Budget, Policy
from shared.money.prices import TIERS, Price, Prices, read_csv

KEYS = {"region", "budgets", "prices", "standing", "grants"}
_BUDGET = {  # key: (default, least, most)
    "month": (None, 0, 1e9),
    "run": (None, 0, 1e9),
    "warn": (80, 0, 100),
    "refuse": (100, 1, 100),
    "grace_seconds": (300, 0, 86_400),
}
_SHIPPED = Path(__file__).with_name("prices.csv")


def load(file: Path, region: str = "") -> Policy:
    """Read the money file. Prices of the file override the app's prices. A missing file means no budgets.

    `region` is the deployment's region, used if the file names none. Raises BadSetting with the file, the key and the
    allowed values.
    """
    shipped = read_csv(_SHIPPED.read_text("utf-8"))
    document = _document(file) if file.is_file() else {}
    if unknown := set(document) - KEYS:
        raise BadSetting(f"{file} has unknown keys {_list(unknown)}; choose from {_list(KEYS)}.")
    own = Prices(_price(entry, f"{file}: prices") for entry in _entries(document, "prices", list, file))
    budgets = _entries(document, "budgets", dict, file)
    sizes = {"grants": _sizes(_entries(document, "grants", dict, file), file)} if "grants" in document else {}
    return Policy(
        region=_region(str(document.get("region") or ""), str(file)) or region,
        budgets={_name(name, file): _budget(entry, f"{file}: budget {name!r}") for name, entry in budgets.items()},
        prices=own,
        shipped=shipped,
        standing={
            str(name): _number(value, name, 0, 1e9, f"{file}: standing")
            for name, value in _entries(document, "standing", dict, file).items()
        },
        **sizes,
    )


def _sizes(entries: dict[Any, Any], file: Path) -> dict[str, float]:
    """Return the largest budget of a grant by the role of its creator."""
    roles = {role.rpartition(".")[2]: role for role in ROLES}
    if unknown := set(entries) - set(roles):
        raise BadSetting(f"{file}: grants has unknown roles {_list(map(str, unknown))}; choose from {_list(roles)}.")
    return {roles[name]: _number(value, name, 0, 1e6, f"{file}: grants") for name, value in entries.items()}


def _budget(entry: Any, where: str) -> Budget:
    if not isinstance(entry, dict) or not set(entry) <= set(_BUDGET) or not {"month", "run"} & set(entry):
        raise BadSetting(f"{where} must be a mapping with month or run, and further keys from {_list(_BUDGET)}.")
    numbers = {key: _number(entry[key], key, *_BUDGET[key][1:], where) for key in entry}
    budget = Budget(**numbers)
    if budget.warn > budget.refuse:
        raise BadSetting(
            f"{where}: warn is {budget.warn:g} and refuse {budget.refuse:g}; warn must not be above refuse."
        )
    return budget


def _price(entry: Any, where: str) -> Price:
    keys = {"vm_size", "tier", "region", "dollars"}
    if not isinstance(entry, dict) or not {"vm_size", "dollars"} <= set(entry) <= keys:
        raise BadSetting(
            f"{where}: each has vm_size and dollars (an hour), and optionally tier and region; found {entry!r}."
        )
    if (tier := str(entry.get("tier", "dedicated"))) not in TIERS:
        raise BadSetting(f"{where}: tier is {tier!r}; choose from {_list(TIERS)}.")
    dollars = _number(entry["dollars"], "dollars", 0, 1e6, where)
    return Price(str(entry["vm_size"]), tier, _region(str(entry.get("region", "")), where), dollars, "money.yaml")


def _region(name: str, where: str) -> str:
    """Return the name of the region. Raises BadSetting for a name that no region has."""
    if name:
        from shared.money.regions import region_fault  # not at the cold start of an app whose file names no region

        if fault := region_fault(name):
            raise BadSetting(f"{where}: region {fault}")
    return name


def _entries(document: dict[str, Any], key: str, kind: type[Any], file: Path) -> Any:
    value = document.get(key)
    if value is None:
        return kind()
    if not isinstance(value, kind):
        raise BadSetting(f"{file}: {key} must be a {'list' if kind is list else 'mapping'}, it is {value!r}.")
    return value


def _name(value: Any, file: Path) -> str:
    if not NAME.fullmatch(str(value)):
        raise BadSetting(f"{file}: {value!r} is not a name; use letters, digits, dashes and underscores.")
    return str(value)


def _number(value: Any, key: str, low: float, high: float, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise BadSetting(f"{where}: {key} is {value!r}; it must be a number from {low:g} to {high:g}.")
    return float(value)


def _document(file: Path) -> dict[str, Any]:
    try:
        document = yaml_files.load(file.read_text("utf-8")) or {}
        plain(document, str(file))
    except (OSError, yaml.YAMLError, BadInput) as exc:
        raise BadSetting(f"{file} can't be read: {exc}") from exc
    if not isinstance(document, dict):
        raise BadSetting(f"{file} must contain a mapping, but it contains a {type(document).__name__}.")
    return document


def _list(names: Any) -> str:
    return ", ".join(sorted(names)) or "none"

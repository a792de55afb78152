"""The clusters file: the declared clusters, their differences from the workspace, and the request bodies that apply
the file. Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import yaml

from ..errors import CliError
from ..results import ClusterStep

Json = dict[str, Any]

NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9-]{1,22}[a-zA-Z0-9]")  # as in shared/kernel/names.py
SIZE = re.compile(r"[A-Za-z][A-Za-z0-9_-]{2,60}")
RETIRED = re.compile(  # as in shared/jobs/vm_size.py
    r"standard_(nc\d+r?(_promo)?|nc\d+r?s_v[23]|nd\d+r?s|nv\d+|nv\d+s_v3|hb\d+(-\d+)?rs)", re.IGNORECASE
)
TIERS = {"low_priority": "LowPriority", "dedicated": "Dedicated"}
UNITS = {"": 1, "s": 1, "m": 60, "h": 3600}
PROJECT, PIN, IDLE = "trainyard.project", "trainyard.pin", "trainyard.idle"  # tags, which the app reads
AUTO_IDLE_SECONDS = 300  # until the scaling timer chooses another time
# Properties that a compute reports and that no request can set.
_READ_ONLY = {"provisioningState", "provisioningErrors", "createdOn", "modifiedOn", "isAttachedCompute", "resourceId"}
_READ_ONLY_INNER = {
    *("allocationState", "allocationStateTransitionTime", "errors", "currentNodeCount", "targetNodeCount"),
    *("nodeStateCounts", "userAccountCredentials"),
}


@dataclass(frozen=True)
class Declared:
    """A cluster as the file declares it. `idle` is in seconds; None means `auto`, which lets the scaling timer
    choose.
    """

    name: str
    size: str
    max: int
    min: int = 0
    tier: str = "low_priority"
    idle: int | None = 120
    project: str = ""
    pin: str = ""

    @property
    def tags(self) -> dict[str, str]:
        tags = {PROJECT: self.project, PIN: self.pin, IDLE: "auto" if self.idle is None else ""}
        return {name: value for name, value in tags.items() if value}


@dataclass(frozen=True)
class Step:
    """One difference between the file and the workspace. `action` is create, change or impossible; `changes` maps each
    property to the old and new value.
    """

    cluster: Declared
    action: str
    changes: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    why: str = ""

    def as_step(self) -> ClusterStep:
        changes = {what: {"from": old, "to": new} for what, (old, new) in self.changes.items()}
        return {"cluster": self.cluster.name, "action": self.action, "changes": changes, "why": self.why}


def read(text: str, what: str) -> list[Declared]:
    """Parse the clusters of a file. A CliError names the file, the cluster, the key and the allowed values."""
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as exc:
        raise CliError(f"{what} is not valid YAML: {exc}") from exc
    entries = document.get("clusters") if isinstance(document, dict) else None
    if not isinstance(entries, dict) or set(document) != {"clusters"} or not entries:
        raise CliError(f"{what} must contain one key, `clusters`: a mapping with at least one name.")
    return [_declared(str(name), entry, f"{what}: cluster {name!r}") for name, entry in entries.items()]


def _declared(name: str, entry: Any, where: str) -> Declared:
    if not NAME.fullmatch(name):
        raise CliError(f"{where}: use 3 to 24 letters, digits and dashes, a letter first and no dash last.")
    keys = {"size", "tier", "min", "max", "idle", "project", "pin"}
    if not isinstance(entry, dict) or not {"size", "max"} <= set(entry) <= keys:
        raise CliError(f"{where} must be a mapping with size and max, and at most {', '.join(sorted(keys))}.")
    if not SIZE.fullmatch(str(entry["size"])):
        raise CliError(f"{where}: size is {entry['size']!r}; use a size of machines such as Standard_D2s_v3.")
    if RETIRED.fullmatch(entry["size"]):
        raise CliError(f"{where}: size is {entry['size']!r}, which Azure has retired; use a newer size.")
    if (tier := entry.get("tier", "low_priority")) not in TIERS:
        raise CliError(f"{where}: tier is {tier!r}; choose {' or '.join(TIERS)}.")
    most = _number(entry["max"], "max", 0, 1000, where)
    least = _number(entry.get("min", 0), "min", 0, most, where)
    texts = {key: _text(entry.get(key, ""), key, where) for key in ("project", "pin")}
    if least and not texts["pin"]:
        raise CliError(f"{where}: min is {least}, so nodes are paid for day and night. Give the reason in `pin`.")
    idle = None if entry.get("idle") == "auto" else _seconds(entry.get("idle", 120), where)
    return Declared(name, str(entry["size"]), most, least, tier, idle, **texts)


def _number(value: Any, key: str, low: int, high: int, where: str) -> int:
    if type(value) is not int or not low <= value <= high:
        raise CliError(f"{where}: {key} is {value!r}; use a whole number from {low} to {high}.")
    return value


def _text(value: Any, key: str, where: str) -> str:
    if not isinstance(value, str) or len(value) > 200 or not value.isprintable():
        raise CliError(f"{where}: {key} is {value!r:.80}; use up to 200 printable characters.")
    return value


def _seconds(value: Any, where: str) -> int:
    match = re.fullmatch(r"(\d{1,7})([smh]?)", str(value)) if type(value) in (int, str) else None
    if not match or not 60 <= (seconds := int(match[1]) * UNITS[match[2]]) <= 86_400 * 7:
        raise CliError(f"{where}: idle is {value!r}; use auto, or from 60 s to 7 days: 120, 2m, 1h.")
    return seconds


def plan(declared: list[Declared], existing: dict[str, Json]) -> list[Step]:
    """Return a step for each declared cluster that differs from the workspace. `existing` holds the workspace's
    AmlComputes by name.
    """
    steps = [_step(cluster, existing.get(cluster.name)) for cluster in declared]
    return [step for step in steps if step is not None]


def _step(cluster: Declared, existing: Json | None) -> Step | None:
    if existing is None:
        return Step(cluster, "create", {key: (None, value) for key, value in wanted(cluster).items()})
    before, after = present(existing), wanted(cluster)
    if cluster.idle is None and before["idle"] == "auto":
        before = before | {"idle_seconds": after["idle_seconds"]}  # the scaling timer chooses the idle time
    changes = {key: (before[key], value) for key, value in after.items() if before[key] != value}
    fixed = sorted({"size", "tier"} & set(changes))
    if fixed:
        why = (
            f"{' and '.join(fixed)} of a cluster can't be changed. Use another name for the new cluster, "
            "or delete the old one first."
        )
        return Step(cluster, "impossible", changes, why)
    return Step(cluster, "change", changes) if changes else None


def wanted(cluster: Declared) -> Json:
    idle = AUTO_IDLE_SECONDS if cluster.idle is None else cluster.idle
    return {
        "size": cluster.size.lower(),
        "tier": cluster.tier,
        "min": cluster.min,
        "max": cluster.max,
        "idle_seconds": idle,
        "idle": "auto" if cluster.idle is None else "",
        "project": cluster.project,
        "pin": cluster.pin,
    }


def present(existing: Json) -> Json:
    """Return the current properties of an AmlCompute, with the same keys as `wanted`."""
    inner, tags = existing["properties"]["properties"], existing.get("tags") or {}
    scale = inner.get("scaleSettings") or {}
    return {
        "size": str(inner.get("vmSize") or "").lower(),
        "tier": "low_priority" if str(inner.get("vmPriority")).lower() == "lowpriority" else "dedicated",
        "min": scale.get("minNodeCount") or 0,
        "max": scale.get("maxNodeCount") or 0,
        "idle_seconds": _duration(scale.get("nodeIdleTimeBeforeScaleDown") or "PT120S"),
        "idle": tags.get(IDLE, ""),
        "project": tags.get(PROJECT, ""),
        "pin": tags.get(PIN, ""),
    }


def _duration(text: str) -> float:
    """Return the seconds of an ISO 8601 duration of days, hours, minutes and seconds; -1 for other text."""
    match = re.fullmatch(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?", text)
    if not match:
        return -1.0
    parts = [float(part or 0) for part in match.groups()]
    return parts[0] * 86_400 + parts[1] * 3600 + parts[2] * 60 + parts[3]


def body(step: Step, existing: Json | None, like: Json | None) -> Json:
    """Return the request body for this step. A new compute takes the location and identity of the compute `like`.
    In an existing compute, only the properties of the step change.
    """
    cluster = step.cluster
    scale = {
        "minNodeCount": cluster.min,
        "maxNodeCount": cluster.max,
        "nodeIdleTimeBeforeScaleDown": f"PT{wanted(cluster)['idle_seconds']}S",
    }
    if existing is None:
        inner: Json = {"vmSize": cluster.size, "vmPriority": TIERS[cluster.tier], "scaleSettings": scale}
        inner["remoteLoginPortPublicAccess"] = "Disabled"
        made = {"computeType": "AmlCompute", "disableLocalAuth": True, "properties": inner}
        return {**_place(like), "tags": cluster.tags, "properties": made}
    if "idle_seconds" not in step.changes and cluster.idle is None:
        scale["nodeIdleTimeBeforeScaleDown"] = existing["properties"]["properties"]["scaleSettings"].get(
            "nodeIdleTimeBeforeScaleDown", "PT120S"
        )
    inner = {key: value for key, value in existing["properties"]["properties"].items() if key not in _READ_ONLY_INNER}
    outer = {key: value for key, value in existing["properties"].items() if key not in _READ_ONLY}
    others = {key: value for key, value in (existing.get("tags") or {}).items() if key not in (PROJECT, PIN, IDLE)}
    changed = {**outer, "properties": {**inner, "scaleSettings": {**inner.get("scaleSettings", {}), **scale}}}
    return {**_place(existing), "tags": {**others, **cluster.tags}, "properties": changed}


def _place(like: Json | None) -> Json:
    """Return the location and identity of a compute. Training nodes read drops with the identity of their cluster."""
    if like is None:
        return {}
    identity = like.get("identity") or {}
    users: Json = {name: {} for name in identity.get("userAssignedIdentities") or {}}
    own_identity = (
        {"type": identity["type"], **({"userAssignedIdentities": users} if users else {})} if identity else None
    )
    return {"location": like.get("location"), **({"identity": own_identity} if own_identity else {})}

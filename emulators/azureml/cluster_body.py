"""REST bodies of clusters, checked: what a cluster may be here. No I/O."""

from __future__ import annotations

from emulators.azureml.config import ClusterSeed
from emulators.azureml.errors import BadRequest
from emulators.azureml.models import Json, seconds


def checked(name: str, body: Json) -> Json:
    """The `properties` of a cluster's body. Raises BadRequest saying what is wrong and what would do."""
    properties = body.get("properties")
    if not isinstance(properties, dict) or properties.get("computeType") != "AmlCompute":
        kind = properties.get("computeType") if isinstance(properties, dict) else None
        raise BadRequest(f"Compute {name!r}: computeType {kind!r} is not supported here; supported: AmlCompute.")
    inner = properties.get("properties") or {}
    settings = inner.get("scaleSettings")
    if not isinstance(settings, dict):
        raise BadRequest(f"Compute {name!r} needs properties.properties.scaleSettings with a maxNodeCount.")
    _check_scale(name, settings)
    if (priority := inner.get("vmPriority") or "Dedicated") not in ("Dedicated", "LowPriority"):
        raise BadRequest(f"Compute {name!r}: vmPriority {priority!r}; choose Dedicated or LowPriority.")
    return {**properties, "properties": {**inner, "vmPriority": priority}}


def _check_scale(name: str, settings: Json) -> None:
    low, high = settings.get("minNodeCount") or 0, settings.get("maxNodeCount")
    if not isinstance(low, int) or not isinstance(high, int) or not 0 <= low <= high:
        raise BadRequest(f"Compute {name!r}: minNodeCount {low!r} and maxNodeCount {high!r} must be 0 <= min <= max.")
    try:
        seconds(settings.get("nodeIdleTimeBeforeScaleDown") or "PT120S")
    except ValueError as error:
        raise BadRequest(f"Compute {name!r}: nodeIdleTimeBeforeScaleDown: {error}.") from None


def seed_body(seed: ClusterSeed, location: str) -> Json:
    """The body that creates a cluster of the configuration."""
    scale = {
        "minNodeCount": seed.min_instances,
        "maxNodeCount": seed.max_instances,
        "nodeIdleTimeBeforeScaleDown": f"PT{seed.idle_seconds:g}S",
    }
    priority = "LowPriority" if seed.tier.lower().replace("_", "") == "lowpriority" else "Dedicated"
    inner = {"vmSize": seed.vm_size, "vmPriority": priority, "scaleSettings": scale}
    return {"location": location, "properties": {"computeType": "AmlCompute", "properties": inner}}

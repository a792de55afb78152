"""REST bodies of clusters, checked: what a cluster may be here. No I/O."""

from __future__ import annotations

from emulators.azureml import checks
from emulators.azureml.checks import mapping
from emulators.azureml.config import ClusterSeed
from emulators.azureml.errors import BadRequest
from emulators.azureml.models import Json


def checked(name: str, body: Json) -> Json:
    """The `properties` of a cluster's body. Raises BadRequest saying what is wrong and what would do."""
    properties = body.get("properties")
    if not isinstance(properties, dict) or properties.get("computeType") != "AmlCompute":
        kind = properties.get("computeType") if isinstance(properties, dict) else None
        raise BadRequest(f"Compute {name!r}: computeType {kind!r} is not supported here; supported: AmlCompute.")
    inner = mapping(properties, "properties")
    checks.optional_text(body, "location")
    checks.texts(body, "tags")
    settings = inner.get("scaleSettings")
    if not isinstance(settings, dict):
        raise BadRequest(f"Compute {name!r} needs properties.properties.scaleSettings with a maxNodeCount.")
    _check_scale(name, settings)
    if (priority := inner.get("vmPriority") or "Dedicated") not in ("Dedicated", "LowPriority"):
        raise BadRequest(f"Compute {name!r}: vmPriority {priority!r}; choose Dedicated or LowPriority.")
    return {**properties, "properties": {**inner, "vmPriority": priority}}


def _check_scale(name: str, settings: Json) -> None:
    low, high = checks.int32(settings, "minNodeCount", 0, 0), checks.int32(settings, "maxNodeCount", -1, 0)
    if low > high:
        raise BadRequest(f"Compute {name!r}: minNodeCount {low!r} and maxNodeCount {high!r} must be 0 <= min <= max.")
    checks.duration(settings, "nodeIdleTimeBeforeScaleDown")


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

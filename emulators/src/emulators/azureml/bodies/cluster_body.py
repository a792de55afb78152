"""Checks the REST bodies of clusters. No I/O."""

from __future__ import annotations

import uuid

from emulators.azureml.kernel import checks
from emulators.azureml.kernel.checks import mapping
from emulators.azureml.kernel.config import NAMESPACE, ClusterSeed
from emulators.azureml.kernel.errors import BadRequest, among
from emulators.azureml.kernel.identity import PRINCIPAL
from emulators.azureml.kernel.models import SERVERLESS, Json
from emulators.tokens import TENANT

MOST_NODES = 65_000  # https://learn.microsoft.com/azure/machine-learning/how-to-manage-quotas
IDENTITIES = frozenset({"None", "SystemAssigned", "UserAssigned"})


# An update of a cluster changes neither: Azure keeps them and reports success (Azure/azure-rest-api-specs#18889).
# Terraform's provider creates a new cluster for a change of either (`ForceNew`,
# machine_learning_compute_cluster_resource.go).
FIXED = ("vmSize", "vmPriority")


# The compute for jobs without one: as many nodes as they need, each released soon after its job.
SERVERLESS_BODY: Json = {
    "computeType": "AmlCompute",
    "properties": {
        "vmSize": "Standard_DS3_v2",
        "vmPriority": "Dedicated",
        "scaleSettings": {"minNodeCount": 0, "maxNodeCount": 128, "nodeIdleTimeBeforeScaleDown": "PT5S"},
    },
}


def checked(name: str, body: Json) -> Json:
    """Return the checked `properties` of a cluster's body. Raises BadRequest with the wrong value and the allowed
    values."""
    properties = body.get("properties")
    if not isinstance(properties, dict) or properties.get("computeType") != "AmlCompute":
        kind = properties.get("computeType") if isinstance(properties, dict) else None
        raise BadRequest(f"Compute {name!r}: computeType {kind!r} is not supported here; supported: AmlCompute.")
    if name.lower() == SERVERLESS:
        raise BadRequest(f"Compute {name!r}: jobs that name no compute run on it; choose another name.")
    inner = mapping(properties, "properties")
    checks.optional_text(body, "location")
    checks.texts(body, "tags")
    settings = inner.get("scaleSettings")
    if not isinstance(settings, dict):
        raise BadRequest(f"Compute {name!r} needs properties.properties.scaleSettings with a maxNodeCount.")
    _check_scale(name, settings)
    if (priority := inner.get("vmPriority") or "Dedicated") not in ("Dedicated", "LowPriority"):
        raise BadRequest(f"Compute {name!r}: vmPriority {priority!r}; choose Dedicated or LowPriority.")
    kept = {key: value for key, value in inner.items() if key != "userAccountCredentials"}
    if account := mapping(inner, "userAccountCredentials"):
        # Password and key are never returned, so they are not stored.
        kept["userAccountCredentials"] = {"adminUserName": checks.text(account, "adminUserName")}
    return {**properties, "properties": {**kept, "vmPriority": priority}}


def updated(present: Json, wanted: Json) -> Json:
    """Return a cluster's `properties` after an update: the requested values, except for properties that Azure does
    not change."""
    inner = present["properties"]
    kept = {name: inner[name] for name in FIXED if name in inner}
    return {**wanted, "properties": {**wanted["properties"], **kept}}


def identity(body: Json) -> Json | None:
    """Return the cluster's `identity` in the service's form, with the ids that Azure assigns, or None without an
    identity."""
    wanted = mapping(body, "identity")
    if not wanted:
        return None
    kinds = {kind.strip() for kind in checks.text(wanted, "type").split(",")}
    if kinds - IDENTITIES or (len(kinds) > 1 and "None" in kinds):
        raise BadRequest(f"identity.type is {wanted['type']!r}; choose {among(IDENTITIES)}, or both of the latter.")
    users = mapping(wanted, "userAssignedIdentities")
    if bool(users) != ("UserAssigned" in kinds):
        raise BadRequest("identity.userAssignedIdentities and the type UserAssigned need each other.")
    found: Json = {"type": wanted["type"]}
    if "SystemAssigned" in kinds:
        found |= {"principalId": PRINCIPAL, "tenantId": TENANT}
    if users:
        found["userAssignedIdentities"] = {name: _ids(name) for name in users}
    return found


def _ids(name: str) -> Json:
    return {what: str(uuid.uuid5(NAMESPACE, f"{what}/{name.lower()}")) for what in ("clientId", "principalId")}


def _check_scale(name: str, settings: Json) -> None:
    low, high = checks.int32(settings, "minNodeCount", 0, 0), checks.int32(settings, "maxNodeCount", -1, 0)
    if low > high:
        raise BadRequest(f"Compute {name!r}: minNodeCount {low!r} and maxNodeCount {high!r} must be 0 <= min <= max.")
    if high > MOST_NODES:
        raise BadRequest(f"Compute {name!r}: maxNodeCount is {high}; a cluster has at most {MOST_NODES} nodes.")
    checks.duration(settings, "nodeIdleTimeBeforeScaleDown")


def seed_body(seed: ClusterSeed, location: str) -> Json:
    """Return the body that creates a cluster of the configuration."""
    scale = {
        "minNodeCount": seed.min_instances,
        "maxNodeCount": seed.max_instances,
        "nodeIdleTimeBeforeScaleDown": f"PT{seed.idle_seconds:.12g}S",
    }
    priority = "LowPriority" if seed.tier.lower().replace("_", "") == "lowpriority" else "Dedicated"
    inner = {"vmSize": seed.vm_size, "vmPriority": priority, "scaleSettings": scale}
    return {"location": location, "properties": {"computeType": "AmlCompute", "properties": inner}}

"""Before anything is made: are providers registered, is the region right, are quotas enough? Says which is short."""

from __future__ import annotations

from typing import Any

from tools import HookFailed, az, rest, say, setting

# One for each namespace of the resources in infra/; a test compares.
PROVIDERS = (
    "Microsoft.Authorization",
    "Microsoft.Consumption",
    "Microsoft.ContainerRegistry",
    "Microsoft.EventGrid",
    "Microsoft.Insights",
    "Microsoft.KeyVault",
    "Microsoft.MachineLearningServices",
    "Microsoft.ManagedIdentity",
    "Microsoft.OperationalInsights",
    "Microsoft.Resources",
    "Microsoft.Storage",
    "Microsoft.Web",
)
API_VERSION = "2024-04-01"  # of Azure ML


def check() -> None:
    register_providers()
    shortages = [*region_faults(), *quota_faults()]
    if shortages:
        raise HookFailed("This subscription can't hold the deployment yet:\n" + "\n".join(f"- {s}" for s in shortages))


def register_providers() -> None:
    states = {found["namespace"].lower(): found["registrationState"] for found in az("provider", "list")}
    for name in PROVIDERS:
        if states.get(name.lower()) != "Registered":
            say(f"Registering the resource provider {name}")
            az("provider", "register", "--namespace", name, "--wait")


def region_faults() -> list[str]:
    """Flex Consumption is not in every region."""
    location = setting("AZURE_LOCATION")
    known = [squeezed(found["name"]) for found in az("functionapp", "list-flexconsumption-locations")]
    if squeezed(location) in known:
        return []
    choices = ", ".join(known)
    return [f"Flex Consumption is not in region {location}. Choose another with azd env set AZURE_LOCATION: {choices}"]


def quota_faults() -> list[str]:
    """Low-priority cores are one quota of their own, for all VM families together."""
    location, size = setting("AZURE_LOCATION"), setting("TRAINYARD_CLUSTER_VM_SIZE", "Standard_D2s_v5")
    nodes = int(setting("TRAINYARD_CLUSTER_MAX_NODES", "4"))
    sizes = {found["name"].lower(): found for found in machine_learning(location, "vmSizes")}
    if not (machine := sizes.get(size.lower())):
        return [f"Azure ML has no VM size {size} in {location}. Set TRAINYARD_CLUSTER_VM_SIZE to another."]
    faults = []
    if not machine.get("lowPriorityCapable", True):
        faults.append(f"VM size {size} can't be low-priority. Set TRAINYARD_CLUSTER_VM_SIZE to another.")
    usage = low_priority_usage(machine_learning(location, "usages"))
    if usage is None:
        say(f"The low-priority quota of {location} could not be found; it is not checked.")
        return faults
    needed, free = nodes * int(machine["vCPUs"]), int(usage["limit"]) - int(usage["currentValue"])
    if free < needed:
        faults.append(
            f"Low-priority cores of Azure ML in {location}: {nodes} x {size} need {needed}, free are {free} "
            f"(limit {usage['limit']}, used {usage['currentValue']}). Ask for more in the studio under Quota, or set "
            "TRAINYARD_CLUSTER_MAX_NODES or TRAINYARD_CLUSTER_VM_SIZE to something smaller."
        )
    return faults


def machine_learning(location: str, what: str) -> list[dict[str, Any]]:
    place = f"/subscriptions/{setting('AZURE_SUBSCRIPTION_ID')}/providers/Microsoft.MachineLearningServices"
    found: list[dict[str, Any]] = rest("get", f"{place}/locations/{location}/{what}?api-version={API_VERSION}")["value"]
    return found


def low_priority_usage(usages: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Azure writes this name in several ways: LowPriorityCores, TotalLowPriorityCores, Total Low-priority vCPUs."""
    names = ((usage, usage["name"].get("value") or usage["name"].get("localizedValue") or "") for usage in usages)
    return next((usage for usage, name in names if "lowpriority" in squeezed(name)), None)


def squeezed(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())

"""Before anything is made: who is signed in, versions, providers, region, quotas, names, and what it costs standing.

azd hooks run preprovision    asks all of it and goes on to the role and the budget
python3 infra/hooks/preflight.py    asks all of it and stops (with AZURE_ENV_NAME and the others set)
"""

from __future__ import annotations

import re
from typing import Any

import names
from tools import HookFailed, az, az_here, listed, missing, rest, run, say, setting

# One for each namespace of the resources in infra/; a test compares. Flex Consumption needs App too.
PROVIDERS = (
    "Microsoft.App",
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
RETIRED = re.compile(  # as in shared/jobs/vm_size.py; whether Azure ML still lists such a size is not known
    r"standard_(nc\d+r?(_promo)?|nc\d+r?s_v[23]|nd\d+r?s|nv\d+|nv\d+s_v3|hb\d+(-\d+)?rs)", re.IGNORECASE
)
API_VERSION = "2024-04-01"  # of Azure ML
CLUSTER = "cpu-cluster"  # the name in infra/modules/workspace.bicep
DEFAULT_SIZE = "Standard_D2s_v3"  # the default of infra/main.parameters.json
BICEP = (0, 34, 1)  # the first that compiles modules without a name
CHECK_NAME = {  # where to ask whether a name is free, and in which version
    "Microsoft.Storage/storageAccounts": ("Microsoft.Storage", "2023-05-01"),
    "Microsoft.KeyVault/vaults": ("Microsoft.KeyVault", "2023-07-01"),
    "Microsoft.ContainerRegistry/registries": ("Microsoft.ContainerRegistry", "2023-07-01"),
    "Microsoft.Web/sites": ("Microsoft.Web", "2023-12-01"),
}
STANDING_DOLLARS = "7.83"  # a month; docs/azure-evidence.md has its parts, and a test compares


def check() -> None:
    """Raises HookFailed with all that stands in the way. Registers providers: without that the rest can't be asked."""
    signed_in()
    faults = bicep_faults()
    register_providers()
    faults += [*region_faults(), *cluster_faults(), *quota_faults(), *name_faults()]
    if faults:
        raise HookFailed("This subscription can't hold the deployment yet:\n" + "\n".join(f"- {f}" for f in faults))
    say(f"Standing, with nothing running, this costs about ${STANDING_DOLLARS} a month (docs/azure-evidence.md)")


def signed_in() -> None:
    try:
        account = az_here("account", "show")
    except HookFailed as exc:
        subscription = setting("AZURE_SUBSCRIPTION_ID")
        raise HookFailed(f"The Azure CLI can't use subscription {subscription}. Run: az login\n{exc}") from exc
    say(f"Signed in as {account['user']['name']}, subscription {account['name']}")


def bicep_faults() -> list[str]:
    """The Azure CLI brings its own Bicep, beside azd's; azure.yaml says which azd is needed."""
    told = str(az("version").get("azure-cli", ""))
    installed = az_text("bicep", "version")
    match = re.search(r"(\d+)\.(\d+)\.(\d+)", installed)
    if not match:
        az_text("bicep", "install")
        return []
    if tuple(map(int, match.groups())) >= BICEP:
        say(f"Azure CLI {told} with Bicep {match[0]}")
        return []
    needed = ".".join(map(str, BICEP))
    return [f"The Azure CLI's Bicep is {match[0]}; {needed} or newer is needed. Run: az bicep upgrade"]


def az_text(*arguments: str) -> str:
    """What a command without JSON says."""
    try:
        return str(az(*arguments) or "")
    except HookFailed as exc:
        return str(exc)
    except ValueError as exc:  # the words themselves, since they are no JSON
        return str(getattr(exc, "doc", ""))


def register_providers() -> None:
    states = {found["namespace"].lower(): found["registrationState"] for found in az_here("provider", "list")}
    for name in PROVIDERS:
        if states.get(name.lower()) != "Registered":
            say(f"Registering the resource provider {name}")
            az_here("provider", "register", "--namespace", name, "--wait")


def region_faults() -> list[str]:
    """Flex Consumption is not in every region."""
    location = setting("AZURE_LOCATION")
    known = [squeezed(found["name"]) for found in az_here("functionapp", "list-flexconsumption-locations")]
    if squeezed(location) in known:
        return []
    choices = ", ".join(known)
    return [f"Flex Consumption is not in region {location}. Choose another with azd env set AZURE_LOCATION: {choices}"]


def quota_faults() -> list[str]:
    """Low-priority cores are one quota of their own, for all VM families together."""
    location, size = setting("AZURE_LOCATION"), setting("TRAINYARD_CLUSTER_VM_SIZE", DEFAULT_SIZE)
    nodes = int(setting("TRAINYARD_CLUSTER_MAX_NODES", "4"))
    sizes = {found["name"].lower(): found for found in machine_learning(location, "vmSizes")}
    machine = sizes.get(size.lower())
    if RETIRED.fullmatch(size):
        return [f"Azure has retired VM size {size}. Set TRAINYARD_CLUSTER_VM_SIZE to another."]
    if not machine or "AmlCompute" not in machine.get("supportedComputeTypes", ["AmlCompute"]):
        return [f"Azure ML has no VM size {size} for clusters in {location}. Set TRAINYARD_CLUSTER_VM_SIZE to another."]
    faults = []
    if not machine.get("lowPriorityCapable", True):
        faults.append(f"VM size {size} can't be low-priority. Set TRAINYARD_CLUSTER_VM_SIZE to another.")
    usage = low_priority_usage(machine_learning(location, "usages"))
    if usage is None:
        say(f"The low-priority quota of {location} could not be found; it is not checked.")
        return faults
    needed, limit = nodes * int(machine["vCPUs"]), int(usage["limit"])
    free = limit - int(usage["currentValue"])
    if limit >= 0 and free < needed:  # -1 is no limit
        faults.append(
            f"Low-priority cores of Azure ML in {location}: {nodes} x {size} need {needed}, free are {free} "
            f"(limit {usage['limit']}, used {usage['currentValue']}). Ask for more in the studio under Quota, or set "
            "TRAINYARD_CLUSTER_MAX_NODES or TRAINYARD_CLUSTER_VM_SIZE to something smaller."
        )
    return faults


def cluster_faults() -> list[str]:
    """Report a cluster of another VM size: Azure never changes it, but reports success (azure-rest-api-specs#18889)."""
    size = setting("TRAINYARD_CLUSTER_VM_SIZE", DEFAULT_SIZE)
    group = f"/subscriptions/{setting('AZURE_SUBSCRIPTION_ID')}/resourceGroups/{names.group()}"
    workspace = f"{group}/providers/Microsoft.MachineLearningServices/workspaces/{names.workspace()}"
    try:
        cluster = rest("get", f"{workspace}/computes/{CLUSTER}?api-version={API_VERSION}")
    except HookFailed as exc:
        if missing(exc):
            return []
        raise
    present = str(cluster["properties"]["properties"]["vmSize"])
    if present.lower() == size.lower():
        return []
    place = f"--resource-group {names.group()} --workspace-name {names.workspace()}"
    return [
        f"The cluster {CLUSTER} has nodes of {present}, and Azure never changes the VM size of a cluster. To have "
        f"{size}, delete the cluster when no run needs it, with az ml compute delete --name {CLUSTER} {place}, and run "
        "azd up again; or make a second cluster and name it in routes.yaml. To keep the cluster as it is, run: "
        f"azd env set TRAINYARD_CLUSTER_VM_SIZE {present}"
    ]


def machine_learning(location: str, what: str) -> list[dict[str, Any]]:
    place = f"/subscriptions/{setting('AZURE_SUBSCRIPTION_ID')}/providers/Microsoft.MachineLearningServices"
    return listed(f"{place}/locations/{location}/{what}?api-version={API_VERSION}")


def low_priority_usage(usages: list[dict[str, Any]]) -> dict[str, Any] | None:
    """The region's quota among those of families, workspaces and clusters, by its type or by a name that it has had."""
    for usage in usages:
        name = squeezed(usage["name"].get("value") or usage["name"].get("localizedValue") or "")
        of_region = str(usage.get("type", "")).lower().endswith("/lowprioritycores/usages")
        if of_region or name in ("totallowprioritycores", "totalclusterlowpriorityregionalvcpus"):
            return usage
    return None


def name_faults() -> list[str]:
    """Names that somebody else has. Those of our own group are ours."""
    subscription = f"/subscriptions/{setting('AZURE_SUBSCRIPTION_ID')}"
    ours = {
        found["name"] for found in az_here("resource", "list", "--tag", f"azd-env-name={setting('AZURE_ENV_NAME')}")
    }
    faults = []
    for kind, name in names.global_names().items():
        provider, version = CHECK_NAME[kind]
        if name in ours:
            continue
        address = f"{subscription}/providers/{provider}/checkNameAvailability?api-version={version}"
        answer = rest("post", address, {"name": name, "type": kind})
        if not answer["nameAvailable"] and not deleted_vault(kind, answer):
            why = answer.get("message", "")
            faults.append(f"The name {name} ({kind}) is taken: {why} Take another environment name: azd env new")
    return faults


def deleted_vault(kind: str, answer: dict[str, Any]) -> bool:
    """Whether it is taken only by the deleted vault of an earlier deployment, which preprovision purges."""
    return kind == "Microsoft.KeyVault/vaults" and "recover" in str(answer.get("message", "")).lower()


def squeezed(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())


if __name__ == "__main__":
    run(check)

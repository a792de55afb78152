"""What Azure alone knows of a resource once it is there. Here: made from its id, the same every time."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any

from emulators.arm.hashes import guid
from emulators.arm.resources import Resource
from emulators.arm.syntax import BicepError

COMPUTES = "microsoft.machinelearningservices/workspaces/computes"
# An update of a cluster takes neither: Azure keeps them and reports success (Azure/azure-rest-api-specs#18889).
# Terraform's provider makes a new cluster for a change of either (`ForceNew`, terraform-provider-azurerm,
# machine_learning_compute_cluster_resource.go).
FIXED = ("vmSize", "vmPriority")
IDENTITIES = (("properties", "principalId"), ("properties", "clientId"), ("identity", "principalId"))


def value_of(resource: Resource, path: tuple[str, ...]) -> Any:
    """The value of a property that the template does not set. Raises BicepError for one that nobody knows."""
    name = resource.last_name
    if path in IDENTITIES or path == ("properties", "workspaceId"):
        return guid(resource.id.lower(), *path)
    known = {
        ("properties", "primaryEndpoints", "blob"): f"https://{name}.blob.core.windows.net/",
        ("properties", "primaryEndpoints", "queue"): f"https://{name}.queue.core.windows.net/",
        ("properties", "primaryEndpoints", "table"): f"https://{name}.table.core.windows.net/",
        ("properties", "vaultUri"): f"https://{name}.vault.azure.net/",
        ("properties", "endpoint"): f"https://{name}.local.eventgrid.azure.net/api/events",
        ("properties", "defaultHostName"): f"{name}.azurewebsites.net",
        ("properties", "loginServer"): f"{name}.azurecr.io",
        ("properties", "ConnectionString"): f"InstrumentationKey={guid(resource.id.lower())}",
    }
    if path not in known:
        raise BicepError(f"{resource.kind} {name}: nobody knows {'.'.join(path)}")
    return known[path]


def listed(name: str, resource: Resource, before: Resource | None) -> Any:
    """What a list function of Azure answers: here that of a site's application settings alone.

    Azure answers with a collection, which is empty where nobody has set anything. Raises BicepError for others.
    """
    if (resource.kind.lower(), resource.last_name, name) != ("microsoft.web/sites/config", "appsettings", "list"):
        raise BicepError(f"{resource.kind} {resource.last_name}: the function {name} is not taken here")
    return {"properties": dict(before.properties) if before else {}}


def kept(resource: Resource, before: Resource | None) -> Resource:
    """The resource as Azure leaves it: a cluster that is there keeps its VM size and its priority."""
    if before is None or resource.kind.lower() != COMPUTES:
        return resource
    body = deepcopy(resource.body)
    present = before.properties.get("properties", {})
    body["properties"]["properties"] |= {name: present[name] for name in FIXED if name in present}
    return replace(resource, body=body)

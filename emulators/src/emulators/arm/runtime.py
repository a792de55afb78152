"""Values that Azure assigns to deployed resources. Here they are derived from the resource's id, so equal ids have
equal values."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any

from emulators.arm.hashes import guid
from emulators.arm.resources import Resource
from emulators.arm.syntax import BicepError

COMPUTES = "microsoft.machinelearningservices/workspaces/computes"
# An update of a cluster changes neither: Azure keeps them and reports success (Azure/azure-rest-api-specs#18889).
# Terraform's provider creates a new cluster for a change of either (`ForceNew`, terraform-provider-azurerm,
# machine_learning_compute_cluster_resource.go).
FIXED = ("vmSize", "vmPriority")
IDENTITIES = (("properties", "principalId"), ("properties", "clientId"), ("identity", "principalId"))


def value_of(resource: Resource, path: tuple[str, ...]) -> Any:
    """Return the value of a property that the template does not set. Raises BicepError for an unknown property."""
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
    """Return the answer of one of Azure's list functions. Only a site's application settings are supported.

    The settings are empty if nobody has set any. Raises BicepError for other functions and resources.
    """
    if (resource.kind.lower(), resource.last_name, name) != ("microsoft.web/sites/config", "appsettings", "list"):
        raise BicepError(f"{resource.kind} {resource.last_name}: the function {name} is not taken here")
    return {"properties": dict(before.properties) if before else {}}


def kept(resource: Resource, before: Resource | None) -> Resource:
    """Return the resource as Azure stores it: an existing cluster keeps its VM size and priority."""
    if before is None or resource.kind.lower() != COMPUTES:
        return resource
    body = deepcopy(resource.body)
    present = before.properties.get("properties", {})
    body["properties"]["properties"] |= {name: present[name] for name in FIXED if name in present}
    return replace(resource, body=body)

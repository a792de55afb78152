"""What Azure alone knows of a resource once it is there. Here: made from its id, the same every time."""

from __future__ import annotations

from typing import Any

from emulators.arm.hashes import guid
from emulators.arm.resources import Resource
from emulators.arm.syntax import BicepError

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

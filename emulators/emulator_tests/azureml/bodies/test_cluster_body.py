"""How the body of a request updates an existing cluster."""

from __future__ import annotations

from typing import Any

from emulators.azureml.bodies import cluster_body


def properties(size: str, priority: str, most: int) -> dict[str, Any]:
    body = {"vmSize": size, "vmPriority": priority, "scaleSettings": {"maxNodeCount": most}}
    return {"computeType": "AmlCompute", "properties": body}


def test_an_update_changes_neither_size_nor_tier() -> None:
    """An update keeps size and tier and reports success, as in Azure. The new scale settings apply."""
    there, asked = properties("Standard_D2s_v3", "LowPriority", 1), properties("Standard_NC6s_v3", "Dedicated", 4)
    assert cluster_body.updated(there, asked) == properties("Standard_D2s_v3", "LowPriority", 4)

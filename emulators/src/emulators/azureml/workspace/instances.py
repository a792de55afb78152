"""Compute instances: machines for one person, which cost money until they are stopped. No job runs on a compute
instance here."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from emulators.azureml.kernel.checks import mapping, text
from emulators.azureml.kernel.errors import NotFound
from emulators.azureml.kernel.models import Json, timestamp

KIND = "ComputeInstance"


@dataclass
class Instance:
    name: str
    properties: Json
    tags: Json
    created: str
    state: str = "Running"
    changed: str = field(default_factory=timestamp)
    operation: str = "Create"

    def body(self, workspace_id: str, location: str) -> Json:
        inner = {
            **self.properties,
            "state": self.state,
            "lastOperation": {
                "operationName": self.operation,
                "operationTime": self.changed,
                "operationStatus": "Succeeded",
                "operationTrigger": "User",
            },
        }
        return {
            "id": f"{workspace_id}/computes/{self.name}",
            "name": self.name,
            "type": "Microsoft.MachineLearningServices/workspaces/computes",
            "location": location,
            "tags": self.tags,
            "properties": {
                "computeType": KIND,
                "properties": inner,
                "provisioningState": "Succeeded",
                "createdOn": self.created,
                "modifiedOn": self.changed,
            },
        }


class Instances:
    """Compute instances by name in lower case. They exist only in memory, so a restart removes them."""

    def __init__(self) -> None:
        self._all: dict[str, Instance] = {}

    def all(self) -> list[Instance]:
        return list(self._all.values())

    def find(self, name: str) -> Instance | None:
        return self._all.get(name.lower())

    def get(self, name: str) -> Instance:
        if found := self.find(name):
            return found
        raise NotFound(f"The compute {name} was not found.")

    def put(self, name: str, document: dict[str, Any]) -> Instance:
        inner = mapping(mapping(document, "properties"), "properties")
        text(inner, "vmSize")
        made = Instance(name, inner, mapping(document, "tags"), timestamp())
        self._all[name.lower()] = made
        return made

    def switch(self, name: str, on: bool) -> None:
        """Start or stop an instance. It reaches the new state at once; Azure takes minutes."""
        instance = self.get(name)
        instance.state, instance.operation = ("Running", "Start") if on else ("Stopped", "Stop")
        instance.changed = timestamp()

    def forget(self, name: str) -> None:
        self._all.pop(name.lower(), None)

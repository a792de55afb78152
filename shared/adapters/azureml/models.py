"""Azure ML's registry of models: each version of ours as a model asset, over plain REST."""

from __future__ import annotations

from shared.adapters.azureml.workspace import connect
from shared.kernel.errors import BadInput, Changed
from shared.kernel.settings import Workspace
from shared.models.model import Version


class AzureMLModels:
    def __init__(self, workspace: Workspace) -> None:
        self._connection = connect(workspace)

    def workspace(self) -> str:
        return self._connection.arm.workspace_id

    def register(self, version: Version, path: str, description: str) -> str:
        arm = self._connection.arm
        place = f"models/{version.model}/versions/{version.number}"
        uri = path.replace("azureml://datastores/", f"azureml:/{arm.workspace_id}/datastores/", 1)
        properties = {
            "modelUri": uri,
            "modelType": "custom_model",
            "jobName": version.run,
            "description": description,
            "tags": {"trainyard.run": version.run, "trainyard.digest": version.digest},
        }
        try:
            arm.put(place, {"properties": properties})
        except (BadInput, Changed):
            if not arm.find(place):  # else it is there already: what a version holds never changes
                raise
        return f"azureml:{version.model}:{version.number}"

"""Azure ML's model registry: each version in Trainyard becomes a model asset, over plain REST."""

from __future__ import annotations

from shared.adapters.azureml.workspace import connect
from shared.jobs.location import Location
from shared.kernel.errors import BadInput, Changed
from shared.kernel.settings import Workspace
from shared.models.model import Version


class AzureMLModels:
    def __init__(self, workspace: Workspace) -> None:
        self._connection = connect(workspace)

    def workspace(self) -> str:
        return f"azureml:/{self._connection.arm.workspace_id}"

    def register(self, version: Version, files: Location, description: str) -> str:
        arm = self._connection.arm
        place = f"models/{version.model}/versions/{version.number}"
        properties = {
            "modelUri": f"azureml:/{arm.workspace_id}/datastores/{files.store}/paths/{files.path}",
            "modelType": "custom_model",
            "jobName": version.run,
            "description": description,
            "tags": {"trainyard.run": version.run, "trainyard.digest": version.digest},
        }
        try:
            arm.put(place, {"properties": properties})
        except (BadInput, Changed):
            if not arm.find(place):  # otherwise it is registered already: a version's content never changes
                raise
        return f"azureml:{version.model}:{version.number}"

"""Registration of outputs: when a job succeeds, an output with the name of a model or data asset becomes this
asset."""

from __future__ import annotations

from emulators.azureml.bodies.job_body import Output
from emulators.azureml.kernel.errors import ArmError, DataError
from emulators.azureml.kernel.models import Job, Json
from emulators.azureml.workspace.places import Places
from emulators.azureml.workspace.workspace import Workspace


class Register:
    """Registers outputs as assets of one workspace."""

    def __init__(self, workspace: Workspace, places: Places) -> None:
        self._workspace = workspace
        self._places = places

    def __call__(self, job: Job, output: Output) -> None:
        """Create the output's named version, or the next version.

        Raises DataError if the version exists with other content.
        """
        if output.asset is None:
            return
        name, wanted = output.asset
        kind = "models" if output.kind.endswith("_model") else "data"
        version = wanted or self._workspace.assets.next_version(kind, name)
        try:
            self._workspace.assets.put(kind, name, version, self._body(kind, job, output))
        except ArmError as error:
            raise DataError(f"Output {output.name!r}: {error.message}") from error

    def _body(self, kind: str, job: Job, output: Output) -> Json:
        uri = self._places.address(output.location)
        if kind == "models":
            return {"modelType": output.kind, "modelUri": uri, "jobName": job.name}
        return {"dataType": output.kind, "dataUri": uri}

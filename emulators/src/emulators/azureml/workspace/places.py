"""The place of an input's bytes: a location from `sources`, resolved through data assets, models and outputs of
jobs."""

from __future__ import annotations

from emulators.azureml.kernel.config import ARTIFACT_CONTAINER
from emulators.azureml.kernel.errors import ArmError, BadRequest, DataError, among
from emulators.azureml.kernel.sources import (
    ARTIFACTS,
    AccountBlob,
    AssetRef,
    JobOutput,
    Location,
    Source,
    Web,
    location,
    source,
)
from emulators.azureml.storage.blobs import Place
from emulators.azureml.workspace.families import places_of
from emulators.azureml.workspace.workspace import Workspace

MOST_STEPS = 10  # from an asset to the next; more means a circle
URIS = {"data": "dataUri", "models": "modelUri"}


class Places:
    """Resolves the locations of inputs and outputs for one workspace with the storage account `account`."""

    def __init__(self, workspace: Workspace, account: str) -> None:
        self._workspace = workspace
        self._account = account

    def place(self, wanted: Source) -> Place | Web:
        """Return the place of the blobs at a location, or a URL to download from. Raises DataError if there is
        neither."""
        try:
            return self._place(self.followed(wanted))
        except ArmError as error:
            raise DataError(error.message) from error

    def check(self, wanted: Source, what: str) -> None:
        """Raise BadRequest for a location whose datastore, asset or job does not exist."""
        try:
            found = self.followed(wanted)
            if isinstance(found, Location):
                self._workspace.datastore(found.datastore)
        except ArmError as error:
            raise BadRequest(f"{what}: {error.message}") from error

    def address(self, wanted: Source) -> str:
        """Return the URI for a job that reads an input by itself (mode direct)."""
        found = self.followed(wanted)
        if not isinstance(found, Location):
            return str(found)
        config = self._workspace.config
        scope = f"subscriptions/{config.subscription_id}/resourcegroups/{config.resource_group}"
        return str(found).replace("azureml://", f"azureml://{scope}/workspaces/{config.workspace}/", 1)

    def followed(self, wanted: Source) -> Location | JobOutput | AccountBlob | Web:
        """Return the location that assets and named outputs refer to. A job's artifacts are returned unchanged."""
        found = wanted
        for _ in range(MOST_STEPS):
            if isinstance(found, AssetRef):
                uri = self._workspace.find(found).properties.get(URIS[found.kind])
                found = source(uri, str(found), "uri_file")  # its type may be any
            elif isinstance(found, JobOutput) and found.output not in (ARTIFACTS, "default"):
                found = self._named_output(found)
            else:
                return found
        raise BadRequest(f"{wanted} leads in a circle.")

    def _named_output(self, wanted: JobOutput) -> Location:
        outputs = places_of(self._workspace.job(wanted.job))
        if wanted.output not in outputs:
            raise BadRequest(f"Job {wanted.job} has no output {wanted.output!r}; it has: {among(outputs)}.")
        base = location(outputs[wanted.output]["uri"], str(wanted))
        return Location(base.datastore, f"{base.path.rstrip('/')}/{wanted.path}" if wanted.path else base.path)

    def _place(self, found: Location | JobOutput | AccountBlob | Web) -> Place | Web:
        if isinstance(found, Location):
            return Place(self._workspace.datastore(found.datastore).container, found.path)
        if isinstance(found, JobOutput):
            self._workspace.job(found.job)
            return Place(ARTIFACT_CONTAINER, f"ExperimentRun/dcid.{found.job}/{found.path}")
        if isinstance(found, AccountBlob):
            if found.account == self._account:
                return Place(found.container, found.path)
            return Web(f"https://{found.account}.blob.core.windows.net/{found.container}/{found.path}")
        return found

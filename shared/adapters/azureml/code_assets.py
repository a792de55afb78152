"""Code and environments, registered with Azure ML once per content.

Code is in a container of its own, which only the app may write: a node can read the code that it runs, but can't change
the code of other jobs. (Azure ML's own way, startPendingUpload, creates one container per version, on which nodes have
no role.) The code is registered over plain REST, because MLClient registers code only as a part of a job or component,
under a random name. Registering one content twice at the same time does no harm: both upload the same files, and one
version remains.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import yaml

from shared.adapters.azureml.workspace import Connection, sdk, sdk_errors
from shared.jobs.snapshot import snapshot_files
from shared.kernel.errors import BadInput, Changed

CODE_CONTAINER = "code"
_HASH_VERSION = "202208"  # the value that the SDK writes beside its own hashes


class AssetIds(Protocol):
    """Storage for the ids of registered contents; see TableAssets."""

    def get(self, kind: str, digest: str) -> str | None: ...

    def put(self, kind: str, digest: str, asset_id: str) -> None: ...


class WorkspaceBlobs(Protocol):
    """The blobs of the workspace's storage account."""

    @property
    def url(self) -> str: ...

    def write(self, container: str, name: str, data: bytes, content_type: str) -> object: ...


class AzureMLAssets:
    """Registers assets. A known asset is not looked up in Azure ML again: never delete an asset in use by a route."""

    def __init__(self, connection: Connection, store: AssetIds, files: WorkspaceBlobs) -> None:
        self._connection = connection
        self._store = store
        self._files = files
        self._ids: dict[tuple[str, str], str] = {}  # cached by this process

    def code(self, folder: str, digest: str) -> str:
        """Return the id of the code asset with the folder's files, registered as `trainyard-<digest>` if it is new.

        A folder given as a URL is already in the workspace's storage.
        """
        if not (asset_id := self._remembered("code", digest)):
            path = _code_path(digest)
            if not self._connection.arm.find(path):
                if folder.startswith(("https:", "http:")):
                    self._put_code(path, folder, digest)
                else:
                    self._register_code(Path(folder), digest, path)
            asset_id = self.code_id(digest)
            self._remember("code", digest, asset_id)
        return asset_id

    def code_id(self, digest: str) -> str:
        return f"azureml:{self._connection.arm.workspace_id}/{_code_path(digest)}"

    def environment(self, file: str, digest: str) -> str:
        """Return the id of the environment in this file, registered under its own name with the digest as version."""
        if not (asset_id := self._remembered("environment", digest)):
            asset_id = self._register_environment(file, digest[:16])
            self._remember("environment", digest, asset_id)
        return asset_id

    def _remembered(self, kind: str, digest: str) -> str | None:
        if not (asset_id := self._ids.get((kind, digest)) or self._store.get(kind, digest)):
            return None
        return self._ids.setdefault((kind, digest), asset_id)

    def _remember(self, kind: str, digest: str, asset_id: str) -> None:
        self._store.put(kind, digest, asset_id)
        self._ids[kind, digest] = asset_id

    def _register_code(self, folder: Path, digest: str, path: str) -> None:
        try:
            for file in snapshot_files(folder):
                name = f"{digest}/{file.relative_to(folder).as_posix()}"
                self._files.write(CODE_CONTAINER, name, file.read_bytes(), "application/octet-stream")
            self._put_code(path, f"{self._files.url}/{CODE_CONTAINER}/{digest}", digest)
        except (BadInput, Changed):
            if not self._connection.arm.find(path):  # otherwise another process was faster
                raise

    def _put_code(self, path: str, address: str, digest: str) -> None:
        properties = {"hash_sha256": digest, "hash_version": _HASH_VERSION}
        self._connection.arm.put(path, {"properties": {"codeUri": address, "properties": properties}})

    def _register_environment(self, file: str, version: str) -> str:
        described = yaml.safe_load(Path(file).read_text("utf-8"))
        path = f"environments/{described['name']}/versions/{version}"
        body = environment_body(Path(file))
        try:
            if body:
                self._connection.arm.put(path, body)
            else:
                self._register_through_sdk(file, version)
        except (BadInput, Changed):
            if not self._connection.arm.find(path):
                raise
        return f"azureml:{described['name']}:{version}"

    def _register_through_sdk(self, file: str, version: str) -> None:
        with sdk_errors(f"could not read {file}"):
            environment = sdk().load_environment(file, params_override=[{"version": version}])
        with sdk_errors(f"could not register environment {environment.name}:{version}"):
            self._connection.ml.environments.create_or_update(environment)


def _code_path(digest: str) -> str:
    return f"codes/trainyard-{digest[:16]}/versions/1"


def environment_body(file: Path) -> dict[str, Any] | None:
    """Return the body of an environment with an image and a conda file, as azure-ai-ml writes it. None for environments
    of another form.
    """
    described = yaml.safe_load(file.read_text("utf-8"))
    if set(described) - {"$schema", "name", "description"} != {"image", "conda_file"}:
        return None
    conda = yaml.safe_load((file.parent / described["conda_file"]).read_text("utf-8"))
    properties = {
        "image": described["image"],
        "condaFile": yaml.safe_dump(conda, sort_keys=True),
        "isAnonymous": False,
        "isArchived": False,
    }
    description = {"description": described["description"]} if "description" in described else {}
    return {"properties": properties | description}


def environment_id(file: str, digest: str) -> str:
    """Return the id of this file's environment: its own name, and the digest as version."""
    name = yaml.safe_load(Path(file).read_text("utf-8"))["name"]
    return f"azureml:{name}:{digest[:16]}"

"""The context of a job.json: the files beside it in a drop, or the settings in a request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shared.jobs.batchai.document import CLUSTER, PROJECT, kind_of, scripts_of
from shared.jobs.batchai.given import BatchAI
from shared.jobs.batchai.job import Beside
from shared.jobs.readers.job_file import JOB_FILE_LIMIT, BrokenJobFile, read_job_file
from shared.kernel.errors import BadInput, NotFound
from shared.kernel.storage import Blobs, Place

LONGEST_SCRIPT = 65_536  # bytes per script; the job itself holds the scripts


def beside_a_drop(blobs: Blobs, folder: Place, document: Mapping[str, Any], account: str) -> Beside:
    """The documents and scripts beside a drop's job.json. Raises BrokenJobFile."""
    cluster, project = _read(blobs, folder, CLUSTER), _read(blobs, folder, PROJECT)
    return Beside(cluster, project, account, files=_scripts(blobs, folder, document))


def beside_a_request(given: BatchAI, account: str) -> Beside:
    return Beside(given.cluster, given.project, given.storage_account or account, given.environment or "", given.files)


def _scripts(blobs: Blobs, folder: Place, document: Mapping[str, Any]) -> dict[str, str]:
    """The scripts beside the job.json, outside of mounts. The scripts are placed at the paths in the job."""
    texts = {}
    for name in scripts_of(document):
        try:
            texts[name] = blobs.read(folder.container, folder.prefix + name, LONGEST_SCRIPT).decode()
        except (NotFound, BadInput, UnicodeDecodeError):
            continue  # the script is in a mount's folder, or must be put there
    return texts


def _read(blobs: Blobs, folder: Place, kind: str) -> dict[str, Any] | None:
    """The document of this kind; None for a missing file, or for a file with other content."""
    name = f"{kind}.json"
    try:
        data = blobs.read(folder.container, folder.prefix + name, JOB_FILE_LIMIT)
    except NotFound:
        return None
    except BadInput as exc:
        raise BrokenJobFile(str(exc)) from exc
    document = read_job_file(name, data).document
    return document if kind_of(document) == kind else None

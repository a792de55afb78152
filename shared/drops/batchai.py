"""A drop whose job.json is Batch AI's: a cluster.json and a project.json beside it say where its files are."""

from __future__ import annotations

from typing import Any, Protocol

from shared.batchai.adopt import Adopted, Order, adopt
from shared.batchai.document import CLUSTER, JOB, PROJECT, kind_of, scripts_of
from shared.batchai.job import Beside
from shared.jobs.job_file import JOB_FILE_LIMIT, BrokenJobFile, JobFile, read_job_file
from shared.jobs.ports import HasBatchAIAccount, HasJobs
from shared.kernel.drop_key import DropKey
from shared.kernel.errors import BadInput, NotFound
from shared.kernel.has import HasBlobs
from shared.kernel.places import DROPS_CONTAINER
from shared.kernel.storage import Blobs

LONGEST_SCRIPT = 65_536  # bytes, all in the job itself


class Ports(HasBlobs, HasJobs, HasBatchAIAccount, Protocol):
    """What is needed here from outside."""


def adopt_job_file(ports: Ports, key: DropKey, job_file: JobFile | None, longest_seconds: float) -> Adopted | None:
    """The Azure ML job of a drop's Batch AI job; None for any other job file. Raises BrokenJobFile."""
    if job_file is None or kind_of(job_file.content) != JOB:
        return None
    beside = Beside(
        _read(ports.blobs, key, CLUSTER),
        _read(ports.blobs, key, PROJECT),
        ports.batchai_account,
        files=_scripts(ports.blobs, key, job_file),
    )
    return adopt(ports, Order(job_file.content, beside, drop=key, longest_seconds=longest_seconds))


def _scripts(blobs: Blobs, key: DropKey, job_file: JobFile) -> dict[str, str]:
    """The scripts that lie beside the job.json, not in a mount's folder: they are laid where the job wants them."""
    found = {}
    for name in scripts_of(job_file.content):
        try:
            found[name] = blobs.read(DROPS_CONTAINER, key.prefix() + name, LONGEST_SCRIPT).decode()
        except (NotFound, BadInput, UnicodeDecodeError):
            continue  # it is in a mount's folder, or must be put into one
    return found


def _read(blobs: Blobs, key: DropKey, kind: str) -> dict[str, Any] | None:
    """The document of this kind; None if there is none, or a file of its name that is something else."""
    name = f"{kind}.json"
    try:
        data = blobs.read(DROPS_CONTAINER, key.prefix() + name, JOB_FILE_LIMIT)
    except NotFound:
        return None
    except BadInput as exc:
        raise BrokenJobFile(str(exc)) from exc
    content = read_job_file(name, data).content
    return content if kind_of(content) == kind else None

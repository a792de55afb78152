"""A job that someone wrote, in whatever form: a job file in a drop, or the body of a request."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from shared.jobs.batchai.document import is_job
from shared.jobs.readers.around import Around, Written
from shared.jobs.readers.azureml import read_layer
from shared.jobs.readers.drop_files import DropFiles
from shared.jobs.readers.job_file import JobFile
from shared.kernel.errors import Impossible

if TYPE_CHECKING:
    from shared.jobs.batchai.given import BatchAI


def read_of_drop(job_file: JobFile, around: Around) -> Written:
    """The job of a drop, with what lies beside it. Raises BrokenJobFile."""
    if is_job(job_file.document):
        from shared.jobs.batchai import adopt

        return adopt.of_drop(job_file.document, around)
    layer = read_layer(job_file.document)
    files = DropFiles(around.stores, around.limits, job_file, around.folder)
    return Written(layer.with_job(files.put_in(layer.job)))


def read_of_request(document: Mapping[str, Any], batchai: BatchAI | None, around: Around) -> Written:
    """The job of a request. Raises Impossible for a Batch AI job that must not become one, with all that is wrong."""
    if is_job(document):
        from shared.jobs.batchai import adopt

        return adopt.of_request(document, batchai, around)
    if batchai is not None:
        raise Impossible("batchai belongs to a Batch AI job.json; the request's job is none.", "bad_batchai")
    return Written(read_layer(document))

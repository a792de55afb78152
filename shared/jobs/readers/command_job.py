"""The reader of Azure ML jobs in job files and requests. Documents without another reader come to this reader."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shared.jobs.kinds import kind_of
from shared.jobs.ports import Around, Written
from shared.jobs.problem import Problem
from shared.jobs.readers.azureml import read_layer
from shared.jobs.readers.drop_files import DropFiles
from shared.jobs.readers.job_file import JobFile
from shared.jobs.readers.pipeline import with_steps
from shared.jobs.spec import JobSpec, Layer
from shared.kernel.errors import Impossible

OF_A_DROP = (
    "declares the files of a drop, which are checked when the drop closes. Put the job file into the drop, or write "
    "`data` in the drop's route."
)


class CommandJobs:
    """See shared.jobs.ports.Reader."""

    def reads(self, _document: Mapping[str, Any]) -> bool:
        return True

    def of_drop(self, job_file: JobFile, around: Around) -> Written:
        files = DropFiles(around.stores, around.limits, job_file, around.folder)
        layer = read_layer(files.read_in(job_file.document))
        job = with_steps(files.put_in(layer.job), files.put_in_step)
        return Written(layer.with_job(job), None if kind_of(job).runs_a_command else JobSpec())

    def of_request(self, document: Mapping[str, Any], beside: Any, _around: Around) -> Written:
        if beside is not None:
            raise Impossible("batchai is only for a Batch AI job.json; the request's job is not one.", "bad_batchai")
        if "data" in document:
            return Written(Layer(problems=(Problem("data", OF_A_DROP),)))
        return Written(read_layer(document))

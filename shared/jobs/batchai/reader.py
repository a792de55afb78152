"""The reader of Batch AI's job.json. The first Batch AI document imports the modules of the reader."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shared.jobs.batchai.document import JOB, kind_of
from shared.jobs.ports import Around, Written
from shared.jobs.readers.job_file import JobFile


@dataclass(frozen=True)
class BatchAIJobs:
    """See shared.jobs.ports.Reader. `account` replaces the placeholder of the storage account in documents."""

    account: str = ""

    def reads(self, document: Mapping[str, Any]) -> bool:
        return kind_of(document) == JOB

    def of_drop(self, job_file: JobFile, around: Around) -> Written:
        from shared.jobs.batchai import adopt

        return adopt.of_drop(job_file.document, around, self.account)

    def of_request(self, document: Mapping[str, Any], beside: Any, around: Around) -> Written:
        from shared.jobs.batchai import adopt

        return adopt.of_request(document, beside, around, self.account)

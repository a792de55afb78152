"""Batch AI documents that someone asks to be run: as what, and whether they may be."""

from __future__ import annotations

from typing import Protocol

from shared.batchai.adopt import Adopted, Order, adopt
from shared.batchai.document import JOB, kind_of
from shared.batchai.job import Beside
from shared.jobs.ports import HasBatchAIAccount, HasJobs, HasLimits
from shared.kernel.errors import Impossible
from shared.kernel.has import HasBlobs
from shared.runs.intake.request import BatchAI, RunRequest


class Ports(HasBlobs, HasJobs, HasLimits, HasBatchAIAccount, Protocol):
    """What is needed here from outside."""


def adopt_request(ports: Ports, request: RunRequest) -> Adopted | None:
    """The Azure ML job of a request's Batch AI job; None if it asks for something else.

    Raises Impossible with all that is wrong with the document, or if it is to be strict and loses anything.
    """
    given = request.batchai
    if kind_of(request.job) != JOB:
        if given is not None:
            raise Impossible("batchai belongs to a Batch AI job.json; the request's job is none.", "bad_batchai")
        return None
    assert request.job is not None
    given = given or BatchAI()
    order = Order(request.job, beside(ports, given), given.mounts, longest_seconds=ports.limits.timeout_seconds)
    adopted = adopt(ports, order)
    if adopted.problems:
        raise Impossible("; ".join(f"{p.path} {p.message}" for p in adopted.problems), "bad_batchai")
    if given.strict and adopted.report.lossy:
        raise Impossible(f"It is to be strict. {adopted.report.summary()}", "lossy")
    return adopted


def beside(ports: Ports, given: BatchAI) -> Beside:
    return Beside(
        given.cluster,
        given.project,
        given.storage_account or ports.batchai_account,
        given.environment or "",
        given.files,
    )

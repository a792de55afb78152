"""Batch AI's documents sent to the API: refusals, and the result for each kind of document."""

from __future__ import annotations

from pathlib import Path

import pytest

from shared.api.imports import import_document
from shared.api.requests import ImportRequest
from shared.jobs.batchai.given import BatchAI
from shared.kernel.errors import Impossible
from shared.runs.intake import create
from shared.runs.intake.dry_run import dry_run
from shared.runs.intake.request import RunRequest
from tests.batchai.documents import gloo, practitioner, project
from tests.fakes.world import World, trainers_folder

PLACES = {"logs": "workspaceblobstore/logs", "scripts": "workspaceblobstore/scripts"}


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(trainers_folder(tmp_path))


def test_what_does_not_belong_together_is_refused(world: World) -> None:
    """`batchai` needs a Batch AI job, and a strict job may lose nothing; the error has the number of lost fields."""
    with pytest.raises(Impossible, match="is only for a Batch AI job"):
        dry_run(world.system, RunRequest(template="mnist", batchai=BatchAI()))
    strict = RunRequest(job=gloo(), batchai=BatchAI(mounts=PLACES, strict=True))
    with pytest.raises(Impossible, match="`strict` is set") as refused:
        dry_run(world.system, strict)
    assert refused.value.code == "lossy"


def test_a_job_says_what_became_of_it_and_which_mounts_are_empty(world: World) -> None:
    """A dry run reports on every field and names empty mounts; a job with an empty mount makes no run."""
    request = RunRequest(job=gloo(nodeCount=1), cluster="cpu-cluster", batchai=BatchAI(mounts=PLACES))
    told = dry_run(world.system, request)
    assert told["report"]
    assert [reason["code"] for reason in told["reasons"]].count("no_data") >= 1
    with pytest.raises(Impossible) as refused:
        create.create_run(world.system, request)
    assert refused.value.code == "no_data"
    assert world.runs.rows == {}


def test_each_kind_of_document_is_shown_as_what_it_becomes(world: World) -> None:
    """A job becomes a job, a cluster a compute and a project its facts, each with its report; other documents are
    refused."""
    job = import_document(world.system, ImportRequest(practitioner(), cluster="cpu-cluster"))
    assert (job["kind"], bool(job["report"]), "command" in job["job"]) == ("job", True, True)
    cluster = {"properties": {"vmSize": "STANDARD_NC6", "scaleSettings": {"manual": {"targetNodeCount": 2}}}}
    found = import_document(world.system, ImportRequest(cluster, cluster="gpu"))
    assert found["kind"] == "cluster"
    assert found["compute"]
    facts = import_document(world.system, ImportRequest(project()))
    assert (facts["kind"], "mounts" in facts["project"]) == ("project", False)
    with pytest.raises(Impossible, match="not a Batch AI document"):
        import_document(world.system, ImportRequest({"hello": "world"}))

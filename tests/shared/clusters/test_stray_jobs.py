"""A job that appears after its run ended is found and canceled, even when the answer to its submission was lost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from shared.clusters.stray_jobs import CURSOR, end_stray_jobs
from shared.jobs.ports import LivePage
from shared.jobs.readers.azureml import read_job
from shared.jobs.spec import JobSpec
from shared.kernel.errors import Unavailable
from shared.reconcile import reconcile
from shared.runs.intake import create
from shared.runs.intake.request import RunRequest
from shared.runs.messages import SubmitRun
from shared.runs.model import Run, RunState
from shared.runs.progress import submit
from shared.runs.progress.cancel import cancel_run
from tests.fakes.parts import changed
from tests.fakes.world import ELASTIC, ROUTE, World, trainers_folder

DATA = "azureml://datastores/workspaceblobstore/paths/p"
ELASTIC_ROUTE = replace(ROUTE, name="elastic", template=read_job(ELASTIC), nodes=3, min_nodes=1)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(trainers_folder(tmp_path), [ROUTE, ELASTIC_ROUTE])


def requested(world: World, template: str = "mnist") -> Run:
    return create.create_run(world.system, RunRequest(template=template, data=DATA))


def ended(world: World, run: Run) -> None:
    world.runs.update(stored := world.runs.get(run.name), changed(stored.value, state=RunState.CANCELED))


def raw(world: World, job: str) -> str:
    return world.jobs.jobs[job].raw


def live(world: World, job: str) -> JobSpec:
    """Let Azure ML carry out a request for this job, from any sender."""
    spec = replace(read_job({"command": "x", "environment": "azureml:e:1", "compute": "azureml:cpu-cluster"}), name=job)
    world.jobs.submit(spec)
    return spec


def test_a_job_of_a_run_that_is_over_is_ended(world: World) -> None:
    """The timer cancels the job and records that on the run. Jobs of live runs and of other people continue."""
    over, going = requested(world), requested(world)
    ended(world, over)
    for job in (over.name, f"{over.name}-a2", going.name, "somebody-elses"):
        live(world, job)
    reconcile(world.system, world.schedules)
    assert [raw(world, job) for job in (over.name, f"{over.name}-a2")] == ["Canceled", "Canceled"]
    assert [raw(world, job) for job in (going.name, "somebody-elses")] == ["Queued", "Queued"]
    assert f"ended job {over.name}-a2" in world.runs.get(over.name).value.people.audit[0].what


def test_every_job_is_looked_at_in_turn(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each period reads two pages, however many jobs there are: the newest, and the next page of a walk through
    all."""
    monkeypatch.setattr(world.jobs, "PAGE", 3)
    run = requested(world)
    ended(world, run)
    live(world, run.name)
    for number in range(20):
        live(world, f"another-{number}")
        world.jobs.set(f"another-{number}", "Completed")
    pages: list[str] = []
    page = world.jobs.live_page

    def counted(token: str = "") -> LivePage:
        pages.append(token)
        return page(token)

    monkeypatch.setattr(world.jobs, "live_page", counted)
    periods = 0
    while raw(world, run.name) != "Canceled":
        before, periods = len(pages), periods + 1
        end_stray_jobs(world.system)
        assert len(pages) - before <= 2
        assert periods <= 7, "21 jobs are seven pages"
    world.drops.move_cursor(CURSOR, "a job that is gone")
    end_stray_jobs(world.system)
    assert world.drops.cursors([CURSOR])[CURSOR] != "a job that is gone"


def test_a_lost_answer_is_followed_by_a_cancel(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """When a run is canceled during the submission of its job, and the answer is lost, the job in Azure ML is
    canceled."""
    run, send = requested(world), world.jobs.submit

    def times_out(job: JobSpec) -> None:
        cancel_run(world.system, run.name)
        send(job)
        raise Unavailable("Read timed out.")

    monkeypatch.setattr(world.jobs, "submit", times_out)
    with pytest.raises(Unavailable):
        submit.submit_run(world.system, SubmitRun(run.name))
    assert raw(world, run.name) == "Canceled"


def test_a_member_is_not_sent_for_a_run_that_is_over(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the run ends during its first member's submission, the other members are not sent, and the first is
    canceled."""
    run, send = requested(world, "elastic"), world.jobs.submit

    def ends_meanwhile(job: JobSpec) -> object:
        answer = send(job)
        ended(world, run)
        return answer

    monkeypatch.setattr(world.jobs, "submit", ends_meanwhile)
    submit.submit_run(world.system, SubmitRun(run.name))
    assert [raw(world, job) for job in world.jobs.jobs] == ["Canceled"]

"""Kinds of runs: one table maps each job to a kind, and each kind defines only what it does differently."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from shared.elastic.api import evict
from shared.jobs.assets import assets, resolve
from shared.jobs.readers.expressions import read_command
from shared.jobs.search import Sweep
from shared.jobs.spec import PIPELINE as PIPELINE_JOB
from shared.jobs.spec import JobSpec
from shared.kernel.errors import Impossible
from shared.runs.features import mended
from shared.runs.intake.from_job import run_of
from shared.runs.model import Run, RunState
from shared.runs.node_use import ClusterUse, use_of_one_job
from shared.runs.ports import RunPorts
from shared.runs.progress import workloads
from shared.runs.progress.one_job import OneJob
from shared.runs.progress.workload import Submitted
from shared.runs.progress.workloads import workload
from tests.fakes.parts import changed
from tests.fakes.world import World, trainers_folder

AT = datetime(2026, 1, 5, 8, tzinfo=UTC)
JOBS = {
    "": JobSpec(command=read_command("python train.py"), cluster="c"),
    "elastic": JobSpec(command=read_command("python -m elastic.launch train.py"), cluster="c", nodes=2),
    "pipeline": JobSpec(kind=PIPELINE_JOB, cluster="c"),
    "sweep": JobSpec(command=read_command("python train.py"), cluster="c", sweep=Sweep()),
}


@pytest.mark.parametrize("kind", JOBS)
def test_a_job_decides_the_kind_of_its_run(kind: str) -> None:
    """The run's column `kind` is the first table entry that accepts the job, and leads back to the same entry."""
    run = run_of("r", JOBS[kind], (0, 1), AT)
    assert (run.asked.kind, workload(run).kind) == (kind, kind)


def test_each_kind_has_an_entry_of_its_own() -> None:
    """No two entries share a name, so a row's kind is unambiguous."""
    assert sorted(each.kind for each in workloads.workloads()) == sorted(JOBS)


def test_an_elastic_run_of_the_version_before_is_elastic() -> None:
    """That version left `kind` empty; a row with members gets the kind when it is read."""
    run = mended(changed(run_of("r", JOBS["elastic"], (1, 1), AT), kind=""))
    assert workload(run).kind == "elastic"


def test_a_kind_of_a_later_version_is_read_as_one_job() -> None:
    """While two versions use the same table, a row with an unknown kind stops no list and no timer."""
    assert workload(changed(run_of("r", JOBS[""], (0, 0), AT), kind="from tomorrow")).kind == ""


@pytest.mark.parametrize("kind", ["", "pipeline", "sweep"])
def test_only_members_can_be_evicted(kind: str, tmp_path: Path) -> None:
    """Evicting a node of another kind of run is refused: the run has no members."""
    world = World(trainers_folder(tmp_path))
    world.runs.insert(run_of("r", JOBS[kind], (0, 0), world.clock()))
    with pytest.raises(Impossible, match="Run r has no members") as caught:
        evict(world.system, "r", 0)
    assert caught.value.code == "not_elastic"


class Labeled(OneJob):
    """A kind that only this test has: one job, with its own folder for its logs."""

    kind = "labeled"

    def accepts(self, job: JobSpec) -> bool:
        return job.experiment == "digits"

    def submit(self, ports: RunPorts, run: Run) -> Submitted:
        ids = assets(ports.jobs, ports.trainers, run.asked.request)
        job = self.job_spec(run, run.name, ports.rendezvous, ports.clock())
        ports.jobs.submit(resolve(job, ids))
        return Submitted(ids, (run.name,))

    def uses(self, run: Run, now: datetime) -> list[ClusterUse]:
        return [use_of_one_job(run, now)]

    def job_folder(self, run: Run, job: str) -> str:
        return "labels/"


def test_a_new_kind_is_a_class_and_an_entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one more entry in the table, a drop becomes a run of the new kind, and is submitted and archived."""
    kinds = (Labeled(), *workloads.workloads())
    monkeypatch.setattr(workloads, "workloads", lambda: kinds)
    world = World(trainers_folder(tmp_path))
    world.complete("1.bin")
    run = world.only_run()
    world.blobs.put("azureml", f"ExperimentRun/dcid.{run.name}/user_logs/std_log.txt", b"done")
    for state in ("Running", "Completed"):
        world.job_goes(run.name, state)
        world.deliver_all()
        world.run_until_idle()
    run = world.only_run()
    assert (run.asked.kind, run.progress.state) == ("labeled", RunState.COMPLETED)
    assert "logs/labels/std_log.txt" in world.archived(run)

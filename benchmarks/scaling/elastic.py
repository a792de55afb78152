"""An elastic run of a hundred members: the cost of each member's event in Resource Manager reads."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.scaling.cloud import CLUSTER, Plan, ScaleCloud, running
from shared.elastic.decide import begin
from shared.elastic.model import KIND
from shared.jobs.command import LAUNCHER, Command
from shared.jobs.spec import JobSpec
from shared.runs.decide import first_moment
from shared.runs.messages import JobEvent, SubmitRun
from shared.runs.model import Run
from shared.runs.progress.follow import follow_job
from shared.runs.progress.submit import submit_run
from shared.runs.progress.workloads import workload
from shared.system import System
from tests.fakes.parts import changed

FATES = ((10, "Failed"), (20, "Completed"))  # up to this member, jobs end with this status


def measure(home: Path, members: int) -> dict[str, Any]:
    plan = Plan(life={"queued_seconds": 0.0}, writes=(1_000_000, 1_000), reconcile="0 0 0 1 1 *")
    with running(home, plan) as cloud:
        cloud.lose_events(1.0)  # the benchmark handles the events itself, one at a time
        system, run = cloud.system(), _run(members)
        system.runs.insert(run)
        submit_run(system, SubmitRun(run.name))
        jobs = workload(run).jobs(run)
        reads = [_event(cloud, system, job) for job in jobs.values()]
        for index in range(min(FATES[-1][0], members)):
            fate = next(fate for limit, fate in FATES if index < limit)
            cloud.ask(f"{cloud.azureml}/control/jobs/{jobs[index]}/end", {"status": fate})
            reads.append(_event(cloud, system, jobs[index]))
        state = system.runs.get(run.name).value
    return {
        "members": members,
        "events": len(reads),
        "state": str(state.progress.state),
        "most_reads_an_event": max(reads),
        "reads_an_event": round(sum(reads) / len(reads), 2),
    }


def _event(cloud: ScaleCloud, system: System, job: str) -> int:
    """Handle an event of this job, and return the number of reads."""
    before = cloud.reads()
    follow_job(system, JobEvent(job))
    return cloud.reads() - before


def _run(members: int) -> Run:
    now = datetime.now(UTC)
    name = "noop-00000000000000e1"
    job = JobSpec(
        name=name,
        title="noop/elastic",
        experiment="noop",
        command=Command((f"python -m {LAUNCHER} train.py",), elastic=True),
        environment="azureml:AzureML-none:1",
        cluster=CLUSTER,
        nodes=members,
        timeout_seconds=3600,
    )
    run = Run.of(
        name=name,
        drop="noop/e",
        route="noop",
        fingerprint="0",
        experiment="noop",
        cluster=CLUSTER,
        nodes=members,
        created_at=now,
        request=job,
        kind=KIND,
    )
    return changed(run, history=first_moment(run)).having(begin(job, (1, members), now))

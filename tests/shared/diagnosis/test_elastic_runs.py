"""An elastic run has a job for each member: one member's log has the steps, and an eviction is no failure."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from shared.api.queries import run as look
from shared.diagnosis.health import RunHealth
from shared.jobs.readers.azureml import read_job
from shared.usage.model import Measurement, Metric, NodeSeries, NodeUsage
from tests.fakes.usage import FakeNodeMetrics
from tests.fakes.world import ELASTIC, ROUTE, World, trainers_folder

ROUTE_1_TO_3 = replace(ROUTE, template=read_job(ELASTIC), trainer="cifar", nodes=3, min_nodes=1, resubmissions=9)
STEPS = "".join(f"epoch 1 step {step}/900 loss 0.5{step}\n" for step in range(30))
NAN = "".join(f"epoch 1 step {step}/900 loss nan\n" for step in range(30))


class Members:
    """A watched elastic run of three members, one of which logs the steps."""

    def __init__(self, tmp: Path) -> None:
        self.world = World(trainers_folder(tmp), [ROUTE_1_TO_3])
        self.world.upload("mnist/a/1.bin")
        self.world.upload("mnist/a/_SUCCESS", b"")
        self.settle(4)
        self.name = self.world.only_run().name
        self.writes, self.running = self.job(0), [self.job(0), self.job(1), self.job(2)]
        for job in self.running:
            self.world.job_goes(job, "Running")
        self.stopped: list[str] = []
        self.settle()

    def job(self, member: int, attempt: int = 1) -> str:
        return f"{self.name}-m{member}-{attempt}"

    def settle(self, seconds: float = 0) -> None:
        self.world.deliver_all()
        self.world.run_until_idle()
        self.world.clock.advance(seconds)
        self.world.run_until_idle()

    @property
    def found(self) -> list[str]:
        health = self.world.runs.get(self.name).value.feature(RunHealth)
        return [each.cause for each in health.ailments] if health else []

    def minutes(self, count: int, text: str, cores: float) -> list[str]:
        """Return the findings of these minutes; the log grows by the text, and each node uses this many processors."""
        found = []
        for _ in range(count):
            look(self.world.system, self.name, viewed=True)
            self.world.clock.advance(50)
            for job in self.running:
                self._write(job, text if job == self.writes else "")
                self._measure(job, 0.0 if job in self.stopped else cores)
            self.settle(10)
            found += self.found
        return found

    def _write(self, job: str, text: str) -> None:
        path = f"ExperimentRun/dcid.{job}/user_logs/std_log_process_0.txt"
        old = self.world.blobs.read_from("azureml", path, 0, 1 << 20)
        if text or not old:
            self.world.blobs.put("azureml", path, (old or b"joined\n") + text.encode())

    def _measure(self, job: str, cores: float) -> None:
        metrics: FakeNodeMetrics = self.world.journals["node_metrics"]
        before, at = metrics.used.get(job, NodeUsage()), self.world.clock() - timedelta(seconds=10)
        series = []
        for metric, value in ((Metric.CORES, cores), (Metric.CORES_IN_ALL, 8.0), (Metric.MEMORY, 900.0)):
            points = tuple(point for each in before.of(metric) for point in each.points)
            series.append(NodeSeries(metric, job, "", (*points, Measurement(at, value, value))))
        metrics.used[job] = NodeUsage(tuple(series))

    def evict(self, member: int) -> None:
        """Let Azure evict the node; the next running member logs the steps."""
        job = self.job(member)
        self.world.job_goes(job, "Failed", "The node was preempted. Error: x")
        self.running.remove(job)
        self.writes = self.running[0]
        self.settle()


@pytest.fixture
def members(tmp_path: Path) -> Members:
    return Members(tmp_path)


def test_an_eviction_is_no_hang_while_the_team_meets_again(members: Members) -> None:
    """The nodes are idle and the log is silent for a minute; then the others continue, and another member logs the
    steps."""
    assert members.minutes(6, STEPS, 3.0) == []
    members.evict(0)
    assert members.minutes(1, "", 0.01) == []
    assert members.minutes(6, STEPS, 3.0) == []


def test_a_hang_after_an_eviction_is_found_although_the_lost_node_is_measured_no_more(members: Members) -> None:
    """The old samples of the evicted node do not count."""
    members.minutes(6, STEPS, 3.0)
    members.evict(0)
    members.minutes(8, STEPS, 3.0)
    assert "deadlock" in members.minutes(5, "", 0.01)


def test_losses_are_read_from_the_member_that_writes_them(members: Members) -> None:
    """Losses are also read after the first member has left."""
    members.minutes(6, STEPS, 3.0)
    members.evict(0)
    members.minutes(6, STEPS, 3.0)
    assert "nan_loss" in members.minutes(4, NAN, 3.0)


def test_a_member_that_is_stopped_is_named_with_the_time(members: Members) -> None:
    """Azure ML reports the job of a stopped member as running. While the others train, the member is named, with the
    command that replaces it; a member that works again is not.
    """
    members.minutes(6, STEPS, 3.0)
    since = members.world.clock() + timedelta(seconds=50 - 10)
    members.stopped = [members.job(2)]
    assert members.minutes(3, STEPS, 3.0)[-1:] == ["straggler"]
    (found,) = look(members.world.system, members.name, viewed=True)["health"]["ailments"]
    assert (found["name"], found["summary"]) == (
        "member 2",
        f"Member 2 does not answer: it has done nothing since {since:%H:%M} UTC, while other members work.",
    )
    assert found["advice"][0] == f"Replace it: python3 trainyard.py evict {members.name} --node 2"
    members.stopped = []
    members.minutes(3, STEPS, 3.0)
    assert members.found == []


def test_members_that_wait_while_one_evaluates_do_not_lag(members: Members) -> None:
    """The others do nothing for minutes; the log has lines, but no steps of the training."""
    members.minutes(6, STEPS, 3.0)
    members.stopped = [members.job(1), members.job(2)]
    assert "straggler" not in members.minutes(6, "valid step 3/90 accuracy 0.9\n" * 9, 3.0)


def test_members_that_are_all_idle_do_not_lag(members: Members) -> None:
    """While the team meets again, or hangs, no member works."""
    members.minutes(6, STEPS, 3.0)
    assert "straggler" not in members.minutes(5, "", 0.01)

"""A running run is checked once a minute while someone views it, and reports what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from shared.api import records
from shared.api.queries import run as look
from shared.diagnosis.advice import advice
from shared.diagnosis.causes import Cause
from shared.diagnosis.health import STALE_AFTER, RunHealth
from shared.diagnosis.next_steps import while_running
from shared.notices.subscribe import SubscriptionSpec, subscribe
from shared.runs.intake import create
from shared.runs.intake.request import RunRequest
from shared.runs.model import Run, RunState
from shared.runs.pulse import Ailment
from shared.usage.model import Measurement, Metric, NodeSeries, NodeUsage
from tests.fakes.usage import FakeNodeMetrics
from tests.fakes.world import ROUTE, World, trainers_folder

MINUTE, LATER = 60.0, 10.0  # from the log's growth to the check
STEPS = "".join(f"epoch 1 step {step}/900 loss 0.5{step}\n" for step in range(30))


class Watched:
    """A world with one running run, whose nodes and log follow the test minute by minute."""

    def __init__(self, tmp: Path, on_hang: str = "", subscribed: bool = False) -> None:
        self.world = World(trainers_folder(tmp), [replace(ROUTE, on_hang=on_hang)])
        self.world.system = replace(self.world.system, audience=self.world.notices)
        if subscribed:
            subscribe(self.world.system, self.world.post, SubscriptionSpec(["sick"], "https://example.org/hook"))
        self.world.blobs.put("drops", "mnist/a/1.bin")
        self.name = create.create_run(self.world.system, RunRequest(template="mnist", data="drops/mnist/a")).name
        self.world.run_until_idle()
        self.world.job_goes(self.name, "Running")
        self.world.deliver_all()
        self.world.run_until_idle()
        self.requests: list[str] = []
        for method in ("list", "grown"):
            self._count(method)

    def _count(self, method: str) -> None:
        real: Callable[..., Any] = getattr(self.world.blobs, method)

        def counted(*args: Any) -> Any:
            if "azureml" in (args[0], getattr(args[0], "container", "")):
                self.requests.append(method)
            return real(*args)

        setattr(self.world.blobs, method, counted)

    def counted(self, port: str, method: str) -> list[str]:
        """Return the list that gets a word for each later call of this method."""
        calls, real = list[str](), getattr(getattr(self.world, port), method)

        def counted(*args: Any) -> Any:
            calls.append(method)
            return real(*args)

        setattr(getattr(self.world, port), method, counted)
        return calls

    @property
    def metrics(self) -> FakeNodeMetrics:
        found: FakeNodeMetrics = self.world.journals["node_metrics"]
        return found

    @property
    def run(self) -> Run:
        return self.world.runs.get(self.name).value

    @property
    def found(self) -> list[str]:
        health = self.run.feature(RunHealth)
        return [each.cause for each in health.ailments] if health else []

    def view(self) -> dict[str, Any]:
        answer = look(self.world.system, self.name, viewed=True)
        self.world.run_until_idle()
        return answer

    def minutes(self, count: int, text: str = "", cores: float = 3.0, viewed: bool = False) -> None:
        """Advance by minutes; each minute the log grows by the text, and the nodes use this many processors."""
        for _ in range(count):
            self.world.clock.advance(MINUTE - LATER)
            if text:
                path = f"ExperimentRun/dcid.{self.name}/user_logs/std_log_process_0.txt"
                old = self.world.blobs.read_from("azureml", path, 0, 1 << 20)
                self.world.blobs.put("azureml", path, old + text.encode())
            self._measure(cores)
            self.world.clock.advance(LATER)
            self.world.run_until_idle()
            if viewed:
                self.view()

    def _measure(self, cores: float) -> None:
        at, series = self.world.clock(), []
        before = self.metrics.used.get(self.name, NodeUsage())
        for metric, value in ((Metric.CORES, cores), (Metric.CORES_IN_ALL, 8.0), (Metric.MEMORY, 900.0)):
            points = tuple(point for each in before.of(metric) for point in each.points)
            series.append(NodeSeries(metric, "n", "", (*points, Measurement(at, value, value))))
        self.metrics.used[self.name] = NodeUsage(tuple(series))


def test_nobody_looks_so_nothing_is_asked(tmp_path: Path) -> None:
    """A run that no one views costs no request to storage or Azure Monitor."""
    watched = Watched(tmp_path)
    watched.minutes(20, STEPS)
    watched.world.reconcile()
    watched.minutes(5, STEPS)
    assert (watched.requests, watched.metrics.requests, watched.run.feature(RunHealth)) == ([], [], None)


def test_while_somebody_looks_a_healthy_run_costs_one_storage_request_a_minute(tmp_path: Path) -> None:
    """The rate is the same for any number of views: no message is sent, no row is written, and the checks end with the
    last view.
    """
    watched = Watched(tmp_path)
    sent, written = watched.counted("queues", "send"), watched.counted("runs", "update")
    for _ in range(15):
        watched.view()
        watched.view()
        watched.minutes(1, STEPS)
    assert 14 <= len(watched.requests) <= 15
    assert 13 <= len(watched.metrics.requests) <= 15
    assert (sent, written) == ([], [])
    assert watched.view()["health"]["ailments"] == []
    asked = len(watched.requests)
    watched.minutes(10, STEPS)
    assert len(watched.requests) == asked


def test_the_first_look_at_a_run_that_hangs_shows_the_hang(tmp_path: Path) -> None:
    """One `show` is enough: the first check reads the log that it lists."""
    watched = Watched(tmp_path)
    watched.minutes(4, STEPS)
    watched.minutes(4, cores=0.0)
    assert [each["cause"] for each in watched.view()["health"]["ailments"]] == ["deadlock"]


def test_a_look_before_the_first_line_does_not_delay_the_finding_of_a_hang(tmp_path: Path) -> None:
    """A look at an empty log sends one request, and the look a minute later checks again and measures the pace."""
    watched = Watched(tmp_path)
    watched.world.blobs.put("azureml", f"ExperimentRun/dcid.{watched.name}/user_logs/std_log_process_0.txt", b"")
    watched.view()
    assert watched.requests == ["list"]
    watched.minutes(1, STEPS, viewed=True)
    assert len(watched.requests) == 2
    watched.minutes(2, cores=0.0, viewed=True)
    assert watched.found == ["deadlock"]


def test_a_problem_that_nobody_confirms_is_forgotten(tmp_path: Path) -> None:
    """The reconcile timer removes a problem that the last viewer left in the row; the next look finds it again."""
    watched = Watched(tmp_path)
    watched.minutes(4, STEPS)
    watched.minutes(4, cores=0.0)
    watched.view()
    assert watched.found == ["deadlock"]
    watched.minutes(int(STALE_AFTER / timedelta(minutes=1)) + 2, STEPS)
    watched.world.reconcile()
    watched.world.run_until_idle()
    assert watched.found == []


def test_a_hang_is_in_the_answer_within_two_minutes(tmp_path: Path) -> None:
    """The hang has evidence and advice, and disappears when the run continues."""
    watched = Watched(tmp_path)
    watched.minutes(4, STEPS, viewed=True)
    assert watched.found == []
    watched.minutes(2, cores=0.0, viewed=True)
    answer = watched.view()["health"]
    assert [each["cause"] for each in answer["ailments"]] == ["deadlock"]
    assert answer["ailments"][0]["evidence"][0].startswith("no line in the log of any rank since")
    assert not {"chain", "viewed_at", "acted_on"} & answer.keys()
    watched.minutes(2, STEPS, viewed=True)
    assert watched.found == []


def test_the_steps_against_a_hang_are_commands(tmp_path: Path) -> None:
    """The first step ends the costs, the second starts the training again."""
    watched = Watched(tmp_path)
    watched.minutes(4, STEPS, viewed=True)
    watched.minutes(2, cores=0.0, viewed=True)
    first, second, *_ = watched.view()["health"]["ailments"][0]["advice"]
    assert first.endswith(f": python3 trainyard.py cancel {watched.name}")
    assert second.endswith(f": python3 trainyard.py continue {watched.name}")


def test_a_run_that_hangs_soon_after_its_start_is_found_like_any_other(tmp_path: Path) -> None:
    """The first read of the log shows the pace of the steps since the log was listed."""
    watched = Watched(tmp_path)
    watched.view()
    watched.minutes(2, STEPS, viewed=True)
    watched.minutes(2, cores=0.0, viewed=True)
    assert watched.found == ["deadlock"]


def test_a_subscription_of_sick_runs_has_one_notice_of_each_ailment(tmp_path: Path) -> None:
    """No one views the run, so the nodes are measured only once in five minutes, and when the log is silent."""
    watched = Watched(tmp_path, subscribed=True)
    watched.minutes(10, STEPS)
    assert 9 <= len(watched.requests) <= 11
    assert len(watched.metrics.requests) <= 3
    watched.minutes(4, "".join(f"step {n} loss nan\n" for n in range(9)))
    ((_, body, _),) = watched.world.sender.posts
    assert f"Run {watched.name} needs attention. The loss is not a number." in body.decode()


def test_a_lost_chain_of_checks_begins_again(tmp_path: Path) -> None:
    """The reconcile timer restarts the chain if checks are still wanted; a second chain ends the first."""
    watched = Watched(tmp_path, subscribed=True)
    watched.minutes(2, STEPS)
    watched.world.queues.messages["checks"].clear()
    watched.world.clock.advance(600)
    watched.world.reconcile()
    watched.world.run_until_idle()
    before = len(watched.requests)
    watched.minutes(5, STEPS)
    assert 4 <= len(watched.requests) - before <= 6


@pytest.mark.parametrize(("on_hang", "ends"), [("tell", False), ("cancel", True), ("retry", True)])
def test_a_route_says_what_to_do_with_a_hang(tmp_path: Path, on_hang: str, ends: bool) -> None:
    """The route's action follows five minutes after the hang was found. `retry` creates one more run, which is not
    restarted again."""
    watched = Watched(tmp_path, on_hang)
    watched.minutes(4, STEPS)
    watched.minutes(4, cores=0.0)
    assert watched.run.cancel.asked_at is None
    watched.minutes(4, cores=0.0)
    assert (watched.run.cancel.asked_at is not None) is ends
    if not ends:
        return
    assert watched.run.cancel.code == "hang"
    assert "The training hangs" in watched.run.cancel.why
    world = watched.world
    world.job_goes(watched.name, "Canceled")
    world.deliver_all()
    for _ in range(8):
        world.clock.advance(30)
        world.run_until_idle()
    assert watched.run.progress.state is RunState.CANCELED
    again = [run for run in world.runs.newest() if watched.name in (run.asked.retry_of, run.asked.continues)]
    assert len(again) == (on_hang == "retry")


def test_the_answer_of_a_run_that_nobody_checked_says_so(tmp_path: Path) -> None:
    """`health` is null."""
    watched = Watched(tmp_path)
    assert records.run(watched.run)["health"] is None


def test_each_step_against_a_slow_node_is_a_command(tmp_path: Path) -> None:
    """The commands leave the node and continue the run."""
    watched = Watched(tmp_path)
    steps = while_running(watched.run, Ailment("straggler", "Node n is slower than the others."))
    commands = [step.partition(": python3 trainyard.py ")[2] for step in steps]
    assert commands == [f"cancel {watched.name}", f"continue {watched.name}", f"metrics {watched.name} --nodes"]


def test_the_advice_against_a_hang_fits_where_the_run_runs(tmp_path: Path) -> None:
    """Nobody can log in to a node in Azure, unless the job has a service; a route without `on_hang` could have it."""
    run = Watched(tmp_path).run
    hang = Ailment("deadlock", "The training hangs.", advice=advice(Cause.DEADLOCK))
    said = "\n".join(while_running(run, hang))
    assert ("faulthandler.dump_traceback_later(300)" in said, "py-spy" in said) == (True, False)
    assert "on_hang: retry, on route mnist" in said
    assert "on_hang" not in "\n".join(while_running(run, hang, "tell"))
    job = replace(run.asked.request, restricted={"services": {"code": {"type": "vs_code"}}})
    with_service = replace(run, asked=replace(run.asked, request=job))
    assert "py-spy dump" in "\n".join(while_running(with_service, hang))

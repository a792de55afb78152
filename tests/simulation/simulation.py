"""One schedule: the whole system on fakes, all its users, and all faults, determined by one seed.

The first part is a chaos of uploads, events, requests, timers, jobs and faults, with several invocations of handlers at
once. Then the faults end, and a few periods of the timers must finish all work: see PERIODS.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from shared.clusters.model import Cluster
from shared.clusters.scaling import scale_clusters
from shared.events import incoming
from shared.jobs.readers.azureml import read_job
from shared.kernel.drop_key import DropKey
from shared.messages.declared import QUEUES
from shared.reconcile import reconcile
from shared.runs.intake import create, retry_and_continue
from shared.runs.intake.request import RunRequest
from shared.runs.model import FINAL
from shared.runs.names import run_of_job
from shared.runs.progress.cancel import cancel_run
from shared.runs.progress.hourly_reconcile import PATIENCE
from shared.system import System
from tests.fakes.models import FakeSigner
from tests.fakes.ports import Clock, FakeBlobs
from tests.fakes.world import ELASTIC, PERIOD, PERIODS, ROUTE, World
from tests.simulation import removals
from tests.simulation.faults import SERVICES, Faults
from tests.simulation.host import Host
from tests.simulation.oracle import Oracle, fingerprint_now
from tests.simulation.outcome import Outcome, short
from tests.simulation.ports import PagedBlobs, Port, RememberedRuns, SimulatedJobs, StrangeDrops
from tests.simulation.promotions import somebodys_wish
from tests.simulation.rules import Rules, all_rules
from tests.simulation.scheduler import Scheduler, Violation

REMOVALS, LATE = "removals", "late"
ALSO = ("", REMOVALS, LATE, *(rules.also for rules in all_rules() if rules.also))
LONGEST = timedelta(seconds=600)  # host.json: functionTimeout
CHAOS = timedelta(minutes=20)
ELASTIC_ROUTE = replace(
    ROUTE,
    name="elastic",
    template=read_job(ELASTIC),
    trainer="cifar",
    cluster="spot",
    nodes=3,
    min_nodes=1,
    resubmissions=2,
)
DROPS = (
    ("mnist/a/1.bin", "mnist/a/2.bin", "mnist/a/_SUCCESS"),
    ("mnist/b/1.bin", "mnist/b/2.bin"),
    ("mnist/c.zip",),
    ("mnist/j/1.bin", "mnist/j/job.yaml"),
    ("mnist/loose.bin", "nowhere/d/1.bin"),
    ("elastic/e/1.bin", "elastic/e/_SUCCESS"),
    ("elastic/f/_SUCCESS", "elastic/f/1.bin"),
)
FATES = (
    ("Completed", "Completed", "Failed", "Canceled", "Queued"),
    ("Failed", "Canceled", "Failed", "Failed", "Failed", "Queued"),
    ("Queued", "Queued", "Completed"),
)
PORTS = ["drops", "runs", "queues", "blobs", "jobs", "clusters", "decisions", "samples", "leases", "events", "models"]
CODES = ((1, 1, 2), (1,))  # exit codes of failed jobs; 2 means unusable data


class Simulation:
    """Call `run` to play the schedule of this seed. With `traced` every step is recorded.

    `also`: with `dates` people also request runs with dates, between a dedicated cluster and the low-priority ones;
    with `sweeps` they request sweeps; with `removals` they remove drops and runs, and upload again; with `challenges`
    the runs of a route compete for its model; with `late` Azure ML carries out submissions long after their callers
    stopped waiting.
    """

    def __init__(self, seed: int, trainers: Path, traced: bool = False, also: str = "") -> None:
        self.random, self.removing, self.late = Random(seed), also == REMOVALS, also == LATE
        self.rules = [rules for rules in all_rules() if not rules.also]
        self.of_feature = next((rules for rules in all_rules() if also and rules.also == also), Rules())
        self.outcome = Outcome(seed)
        self.traced, self.counts = traced, self.outcome.counts
        self.faults = Faults.drawn(self.random)
        self.scheduler = Scheduler(self.random, self.random.choice((0.05, 0.2, 0.5, 1.0)))
        workers = self.random.choice((1, 2, 4, 8))
        self.files = [file for drop in self.random.sample(DROPS, self.random.choice((1, 2, 4))) for file in drop]
        self.uploads = self.random.choice((3, 5, 8, 30))  # remaining uploads; each masks events lost before it
        self.fates: tuple[str, ...]
        self.fates, self.codes = self.random.choice(FATES), self.random.choice(CODES)
        self.length = self.random.choice((60, 150, 300, 600))
        self.world = self._world(trainers)
        self.oracle = Oracle(self.world, self)
        self.host = Host(self, workers)
        names = [*PORTS, "removals"] if self.removing else PORTS
        behind = {name: getattr(self.world, name) for name in names} | {"blobs": PagedBlobs(self.world.blobs)}
        ports: dict[str, Any] = {name: Port(name, port, self) for name, port in behind.items()}
        self.system = replace(self.world.system, **ports)
        self.of_feature.start(self)
        self.lost: set[DropKey] = set()  # drops with a lost upload event or a lost check
        self.deleted: set[DropKey] = set()

    def _world(self, trainers: Path) -> World:
        world = World(trainers, (ROUTE, ELASTIC_ROUTE))
        clusters = [Cluster("cpu-cluster", 1, 4, 120), Cluster("spot", 1, 4, self.random.choice((0, 30)))]
        clusters = self.of_feature.clusters(world, clusters)
        world.clusters.clusters = {cluster.name: cluster for cluster in clusters}
        self.jobs = SimulatedJobs(tuple(world.clusters.clusters), world.clock, self.random)
        self.jobs.stale_seconds = self.faults.stale_seconds
        self.jobs.content = lambda job: fingerprint_now(world, job)
        world.jobs = self.jobs
        skew = timedelta(seconds=self.faults.skew_seconds)
        world.blobs = FakeBlobs(lambda: (world.clock() + skew).replace(microsecond=0))
        world.runs = RememberedRuns(world.clock, self.random)
        world.drops = StrangeDrops(self.random)
        world.signer = FakeSigner(1)
        world.system = replace(
            world.system, jobs=world.jobs, blobs=world.blobs, runs=world.runs, drops=world.drops, signer=world.signer
        )
        return world

    def system_of_process(self) -> System:
        return self.of_feature.system(self)

    def run(self) -> Outcome:
        try:
            self._chaos()
            self._heal()
        except Violation as exc:
            self.outcome.broken = str(exc)
        except Exception as exc:  # noqa: BLE001  # whatever else a handler raises is a fault too
            self.outcome.broken = f"a handler raised {exc!r}"
        for invocation in list(self.scheduler.alive):
            invocation.ended = lambda _: None
            self.scheduler.kill(invocation, "the schedule is over")
        self.outcome.checks = self.oracle.checks
        self.outcome.count(self.world)
        return self.outcome

    def note(self, what: str, args: tuple[Any, ...] = (), word: str = "") -> None:
        """Write a line of the trace: the invocation, the call, its arguments, and its result."""
        self.outcome.calls += 1
        if self.traced:
            who = self.scheduler.current.name if self.scheduler.current else ""
            at = (self.world.clock() - BEGIN).total_seconds()
            said = ", ".join(short(value) for value in args)
            self.outcome.trace.append(f"{at:9.1f} s  {who:34} {what}({said}){f'  <-- {word}' if word else ''}")

    # --- the chaos -------------------------------------------------------------------------------------------------

    def _chaos(self) -> None:
        until = self.world.clock() + CHAOS
        weights = [self.random.choice((0.3, 1.0, 3.0)) * often for _, often in self._actions()]
        actions = [action for action, _ in self._actions()]
        for _ in range(self.length):
            self.scheduler.round += 1
            self._make_faults()
            self.random.choices(actions, weights)[0]()
            for _ in range(self.random.choice((1, 3, 10))):
                self._go_on()
            if self.world.clock() > until:
                break

    def _actions(self) -> list[tuple[Callable[[], None], float]]:
        return [
            (self._upload, 3.0), (self._delete, 0.1), (self._deliver, 3.0), (self.host.handle, 8.0), (self._wait, 3.0),
            (self._job_goes, 5.0), (self._ask, 0.5), (self._cancel, 1.0), (self._retry, 0.2),
            *(action for rules in self.rules for action in rules.actions(self)),
            (partial(self.host.timer, "reconcile", reconcile), 0.6),
            (partial(self.host.timer, "scaling", scale_clusters), 0.6),
            (self._scale_up, 0.2), (self._lose_compute, 0.5), (self._promote, 1.0),
            *self.of_feature.actions(self),
            *([(partial(removals.ask, self), 8.0)] if self.removing else []),
            *([(self._late_jobs, 1.0), (self._cancel, 3.0)] if self.late else []),
        ]  # fmt: skip

    def _make_faults(self) -> None:
        faults = self.faults
        if faults.outage and self.random.random() < faults.outage:
            self.faults.down = set() if faults.down else set(SERVICES[self.random.choice(sorted(SERVICES))])
            self.note("OUTAGE of", tuple(sorted(faults.down)))
        if faults.stall and self.random.random() < faults.stall:
            self._advance(self.random.choice((10, 100)))

    def _go_on(self) -> None:
        if invocation := self.scheduler.next():
            if self.world.clock() - invocation.began_at > LONGEST:
                self.note(f"TIMEOUT kills {invocation.name}")
                self.scheduler.kill(invocation, "functionTimeout")
            else:
                self.scheduler.go_on(invocation)

    def _advance(self, seconds: float) -> None:
        self.world.clock.advance(seconds)
        self.note(f"CLOCK +{seconds:g}")

    def _wait(self) -> None:
        self._advance(self.random.choice((0.3, 0.7, 1, 2, 3, 6, 20, 61)))

    def _upload(self) -> None:
        if not self.uploads:
            return
        self.uploads -= 1
        busy = [file for file in self.files if DropKey.of(file) in self.oracle.opened]  # while a check runs
        name = self.random.choice(busy if busy and self.random.random() < 0.7 else self.files)
        jobs = (b"inputs: {epochs: 3}", b"none: of, this")
        contents = jobs if name.endswith("job.yaml") else (b"x", b"y", b"z", b"zz")
        data = b"" if name.endswith("_SUCCESS") else self.random.choice(contents)
        event = self.world.upload(name, data)
        event["eventTime"] = (self.world.clock() + timedelta(seconds=self.faults.skew_seconds)).isoformat()
        self.note("UPLOAD", (name, data))
        if self.random.random() < 0.6:  # the event arrives at once
            self.world.deliver(self.world.in_flight.pop())
            self.host.handle("drop-events", -1)

    def _delete(self) -> None:
        if names := list(self.world.blobs.containers.get("drops", {})):
            name = self.random.choice(names)
            self.world.blobs.delete("drops", name)
            self.deleted.add(DropKey.of(name))
            self.note("DELETE", (name,))

    def _deliver(self) -> None:
        if events := self.world.in_flight:
            index = self.random.randrange(len(events))
            event = events[index]
            if self.random.random() >= self.faults.duplicate:
                del events[index]
                if self.random.random() < self.faults.lose:
                    self.note("LOST event", (event["id"],))
                    self.forget(event)
                    return
            self.note("DELIVER", (event["id"],))
            self.world.deliver(event)

    def forget(self, event: dict[str, Any]) -> None:
        if written := incoming.blob_written(event):
            self.lost.add(DropKey.of(written.name))

    def times_out(self) -> bool:
        """Return whether a submission gets no answer and is carried out later."""
        return self.late and not self.outcome.periods and self.random.random() < 0.4

    def _job_goes(self) -> None:
        if live := self.jobs.live():
            name = self.random.choice(live)
            now = self.world.jobs.jobs[name].raw
            ends = ("Canceled",) if name in self.jobs.to_end else self.fates
            raw = "Running" if now == "Queued" and self.random.random() < 0.7 else self.random.choice(ends)
            self._goes(name, raw)

    def _late_jobs(self) -> None:
        for name in self.jobs.carry_out_late():
            self.note("LATE JOB", (name,))
            self.counts["submissions carried out late"] += 1
            if self.world.runs.rows[run_of_job(name)].value.progress.state in FINAL:
                self.counts["jobs that began after their run's end"] += 1
                self.jobs.after_end.add(name)

    def _goes(self, name: str, raw: str) -> None:
        code = self.random.choice(self.codes)
        words = f"Execution failed. User process 'python' exited with status code {code}."
        if self.random.random() < 0.3:
            words = "UserError: AzureMLCompute job failed. PreemptionError: Nodes of this job got pre-empted."
        error = words if raw == "Failed" else ""
        self.note("JOB", (name, raw))
        run = self.world.runs.rows[run_of_job(name)].value
        self.of_feature.goes(self.world, run, raw, partial(self.world.job_goes, name, raw, error))

    def _scale_up(self) -> None:
        clusters = self.world.clusters.clusters
        name = self.random.choice(list(clusters))
        clusters[name] = replace(clusters[name], min_nodes=1, nodes=self.random.choice((0, 0, 1)))

    def _lose_compute(self) -> None:
        """Remove a cluster, or restore it; jobs that have started are not affected."""
        self.world.jobs.clusters ^= {"spot"}
        self.note("COMPUTE", tuple(sorted(self.world.jobs.clusters)))

    # --- people's requests -----------------------------------------------------------------------------------------

    def _ask(self) -> None:
        key, template = self.random.choice("kl"), self.random.choice(("mnist", "elastic"))
        request = RunRequest(template=template, data="drops/mnist/a")
        self.host.call("create_run", partial(create.create_run, self.system, request, key))

    def some_run(self) -> str:
        """Return a run; half of the time the newest, which is still live."""
        names = list(self.world.runs.names) or [""]
        return names[-1] if self.random.random() < 0.5 else self.random.choice(names)

    def _cancel(self) -> None:
        if run := self.some_run():
            self.host.call("cancel_run", partial(cancel_run, self.system, run))

    def _retry(self) -> None:
        if run := self.some_run():
            self.host.call("retry_run", partial(retry_and_continue.retry_run, self.system, run))

    def _promote(self) -> None:
        if wish := somebodys_wish(self):
            self.host.call(*wish)

    # --- the healing -----------------------------------------------------------------------------------------------

    def _heal(self) -> None:
        """End the faults, and count the timer periods until no work is left."""
        self.faults.heal()
        self.scheduler.thaw()
        self.world.jobs.clusters |= {"spot"}
        self.note("HEALED")
        periods = PERIODS + self._patience_of_archives()
        while left := self._after_a_period():
            if self.outcome.periods == periods:
                raise Violation(f"after {periods} periods without faults: {'; '.join(left)}")
        self._promotions()
        self.oracle.healed()
        for rules in all_rules():
            rules.healed(self)
        self._hours_end()

    def _promotions(self) -> None:
        """Promote the existing models, with several people at once whose writes fail."""
        self.faults.only = ("models",)
        self.faults.crash, self.faults.lost_answer = self.random.choice(((0.0, 0.0), (0.05, 0.1)))
        for _ in range(2):
            for _ in range(self.random.choice((1, 2, 4))):
                self._promote()
                self.of_feature.promotes(self)
            self._drain()
        self.faults.heal()

    def _patience_of_archives(self) -> int:
        """Return the periods until the next attempt of archives that failed several times; each pause is twice the
        last."""
        runs = [row.value for row in self.world.runs.rows.values()]
        failed = [run for run in runs if run.progress.state in FINAL and run.archive.at is None and run.archiving.tries]
        due = [run.progress.history[-1].at + PATIENCE * 2**run.archiving.tries for run in failed]
        return max((max(0, int((at - self.world.clock()).total_seconds() // PERIOD)) for at in due), default=0)

    def _after_a_period(self) -> list[str]:
        self._period()
        self.outcome.periods += 1
        return self.oracle.unsettled()

    def _period(self) -> None:
        """Play one period: fire the timers once, handle the messages, and let jobs end."""
        until = self.world.clock() + timedelta(seconds=PERIOD)
        self._late_jobs()
        self.host.timer("reconcile", reconcile)
        self.host.timer("scaling", scale_clusters)
        while True:
            self._drain()
            if any(self._jobs_go_on()):
                continue
            next_at = self.world.queues.next_visible_at()
            if next_at is None or next_at > until:
                break
            self.world.clock.now = max(next_at, self.world.clock())
        self.world.clock.now = until

    def _drain(self) -> None:
        for _ in range(20_000):
            while self.world.in_flight:
                self.world.deliver(self.world.in_flight.pop(0))
            self.host.handle()
            if not self.scheduler.alive and not any(self.world.queues.visible(queue) for queue in QUEUES):
                return
            self._go_on()
        raise Violation(f"messages breed: {self.world.queues.counts(QUEUES)}")

    def _jobs_go_on(self) -> list[str]:
        """Let canceled jobs end and others complete. A job whose run is over or should end keeps running, and costs
        money, until someone cancels it."""
        moved = []
        for name in self.jobs.live():
            if name in self.jobs.to_end:
                self._goes(name, "Canceled")
            elif (
                run := self.world.runs.rows[run_of_job(name)].value
            ).progress.state not in FINAL and not run.cancel.asked_at:
                self._goes(name, "Completed")
            else:
                continue
            moved.append(name)
        return moved

    def _hours_end(self) -> None:
        """Check that two hours later no hour is left to reconcile."""
        self.world.clock.advance(7200)
        for _ in range(2):
            self._period()
        if left := self.world.runs.hours():
            raise Violation(f"the hours {left} are looked at for ever")


BEGIN = Clock().now


def play(seed: int, trainers: Path, traced: bool = False, also: str = "") -> Outcome:
    """Play the schedule of this seed."""
    return Simulation(seed, trainers, traced, also).run()

"""The rules that must hold after every effect of a call, and at the end, when all faults are over."""

from __future__ import annotations

import json
import re
from typing import Any

from shared.drops.model import Drop, DropState
from shared.events.messages import Announce
from shared.jobs.spec import LEFT_OUTPUT as LEFT
from shared.kernel.drop_key import DropKey
from shared.kernel.message import Message
from shared.kernel.storage import Place
from shared.messages.declared import QUEUES
from shared.runs.content import drop_blobs, survey
from shared.runs.model import FINAL, Run, RunState
from shared.runs.names import run_of_job
from shared.runs.progress.workloads import workload
from shared.runs.results.outputs import archive_folder
from tests.fakes.world import World
from tests.simulation.ports import SimulatedJobs
from tests.simulation.promotions import check_history, check_proofs
from tests.simulation.removals import Requested
from tests.simulation.rules import all_rules
from tests.simulation.scheduler import check

FURTHER = re.compile(r"-a\d+$")  # a further job of a run of one job
OPEN = (DropState.OPEN, DropState.SEALING)


class Oracle:
    """Checks the rules. `world` holds the truth. The handlers' ports report each of their effects to the oracle."""

    def __init__(self, world: World, simulation: Any) -> None:
        self.world, self.simulation = world, simulation
        self.opened: dict[DropKey, int] = {}  # open drops: the step of their opening
        self.needed: dict[str, int] = {}  # runs: the step since which they need their cluster
        self.put: dict[str, int] = {}  # jobs: the step in which they were submitted
        self.trained: dict[tuple[str, str], str] = {}
        self.decisions = 0
        self.overlapped: set[str] = set()  # ClusterAtZero that concurrent checks may have skipped
        self.checks = 0
        self.requested = Requested(world)
        self.rules = all_rules()

    def before(self, port: str, method: str, args: tuple[Any, ...]) -> None:
        """Remember what the invocation will read, and check what it is about to delete."""
        if method == "remove_listed":
            self.requested.removing(args[0], args[1])
        if (sweep := self.simulation.scheduler.current) is None:
            return
        if (port, method) == ("drops", "open"):
            sweep.looked_at = self.simulation.scheduler.steps
        elif (port, method) == ("decisions", "latest"):
            sweep.decisions_read = self.decisions

    def after(self, port: str, method: str, args: tuple[Any, ...], result: Any) -> None:
        """Check what this call did."""
        if checks := getattr(self, f"_{port}_{method}", None):
            self.checks += 1
            checks(args, result)

    # --- after each effect -----------------------------------------------------------------------------------------

    def _drops_insert(self, args: tuple[Any, ...], result: Any) -> None:
        self._drop_is(result.value)

    def _drops_replace(self, args: tuple[Any, ...], result: Any) -> None:
        self._drop_is(result.value)
        self.requested.marked(args[1].value, result.value)

    def _drops_delete(self, args: tuple[Any, ...], result: Any) -> None:
        self.opened.pop(args[0].value.key, None)

    _drops_forget = _drops_delete

    def _drop_is(self, drop: Drop) -> None:
        check(drop.code and drop.why, f"drop {drop.key} is {drop.state} without a code and a reason")
        if drop.state in OPEN:
            self.opened.setdefault(drop.key, self.simulation.scheduler.steps)
        else:
            self.opened.pop(drop.key, None)
        if drop.state is DropState.SEALED:
            check(drop.run in self.world.runs.rows, f"drop {drop.key} is sealed, its run {drop.run} does not exist")

    def _runs_insert(self, args: tuple[Any, ...], result: Any) -> None:
        run: Run = args[0]
        now = self.simulation.scheduler.steps
        began = (
            self.opened.get(DropKey.of(run.asked.drop), now)
            if run.asked.drop and not run.asked.digest and not run.asked.retry_of
            else now
        )
        self.needed.setdefault(run.name, began)
        explained = [rules.begun(self.world, run) for rules in self.rules]
        if not (any(explained) or run.asked.digest or run.asked.retry_of):
            first = self.trained.setdefault((run.asked.drop, run.asked.fingerprint), run.name)
            check(first == run.name, f"runs {first} and {run.name} train the same content")

    def _runs_update(self, args: tuple[Any, ...], result: Any) -> None:
        before: Run = args[0].value
        run: Run = result.value
        check(
            before.progress.state not in FINAL or before.progress.state is run.progress.state,
            f"run {run.name} left {before.progress.state}",
        )
        if run.progress.state in (RunState.FAILED, RunState.CANCELED):
            check(run.progress.reason, f"run {run.name} is {run.progress.state} without a reason")
        if run.archive.at is not None and before.archive.at is None:
            self._archived(self.world.runs.rows[run.name].value)
        judged = [rules.stepped(self.simulation, before, run) for rules in self.rules]
        if not any(judged):
            spent, budget = run.jobs.number - 1, run.asked.resubmissions
            check(spent <= budget, f"run {run.name} spent {spent} of {budget} resubmissions")

    def handled(self, message: Message | None) -> None:
        for rules in self.rules:
            rules.handled(self.simulation, message)

    def _models_write(self, args: tuple[Any, ...], result: Any) -> None:
        check_history(self.world.models, args[1])
        for rules in self.rules:
            rules.written(self.world, args[1])

    def _live(self) -> list[str]:
        assert isinstance(self.world.jobs, SimulatedJobs)
        return self.world.jobs.live()

    def _jobs_submit(self, args: tuple[Any, ...], result: Any) -> None:
        name = args[0].name
        run = run_of_job(name)
        check(run in self.world.runs.rows, f"job {name} belongs to no run")
        self.put.setdefault(name, self.simulation.scheduler.steps)
        member = name.rpartition("-")[0]
        if name == run or FURTHER.search(name):
            same = [job for job in self._live() if run_of_job(job) == run]
            check(len(same) <= 1, f"a run of one job has several live ones: {', '.join(same)}")
        if member != run:
            same = [job for job in self._live() if run_of_job(job) != job and job.rpartition("-")[0] == member]
            check(len(same) <= 1, f"a member has several live jobs: {', '.join(same)}")

    def _queues_send(self, args: tuple[Any, ...], result: Any) -> None:
        if isinstance(args[0], Announce):
            self._announced(args[0].kind, args[0].data)

    def _events_publish(self, args: tuple[Any, ...], result: Any) -> None:
        self._announced(args[0], args[2])

    def _announced(self, kind: str, data: dict[str, Any]) -> None:
        if kind == "RunSubmitted":
            jobless = not workload(self.world.runs.rows[data["run"]].value).has_own_nodes
            check(jobless or self._jobs_of(data["run"]), f"RunSubmitted is told of run {data['run']}, which had no job")

    def _decisions_record(self, args: tuple[Any, ...], result: Any) -> None:
        """Check a decision. Of two concurrent checks, one may read before the other records, and skip a
        ClusterAtZero."""
        check(args[0].code and args[0].why, f"a decision about cluster {args[0].cluster} has no code or reason")
        sweep = self.simulation.scheduler.current
        if sweep is not None and args[0].action == "to-zero" and not args[0].replaces:
            late = [what for what, since in self._needs(args[0].cluster) if since < sweep.changed_at]
            check(not late, f"cluster {args[0].cluster} stays at zero, and {late} needed it when it went there")
        if sweep is not None and sweep.decisions_read != self.decisions:
            self.overlapped.add(f"{args[0].cluster}/{args[0].at.isoformat()}")
        self.decisions += 1

    def _clusters_scale(self, args: tuple[Any, ...], result: Any) -> None:
        """Check that every need known when the sweep read the cluster kept the cluster up, and so did needs that
        came while the sweep changed another cluster, which takes minutes. No reading can see a later need: the
        change is a step of its own and is undone, see _sweeps_record."""
        sweep = self.simulation.scheduler.current
        assert sweep is not None
        if self.world.clusters.clusters[args[0]].min_nodes:
            self.simulation.counts["minimums put back"] += 1
            return
        for what, since in self._needs(args[0]):
            seen = since < max(sweep.looked_at, sweep.changed_at)
            check(not seen, f"cluster {args[0]} goes to zero while {what} needs it")
            self.simulation.counts["needs that began between a sweep's look and its change"] += 1
        sweep.changed_at = self.simulation.scheduler.steps

    def _needs(self, cluster: str) -> list[tuple[str, int]]:
        routes, now = self.world.system.routes, self.simulation.scheduler.steps
        drops = [
            (f"drop {k}", at) for k, at in self.opened.items() if getattr(routes.get(k.route), "cluster", "") == cluster
        ]
        runs = [row.value for row in self.world.runs.rows.values()]
        mine = [run for run in runs if run.asked.cluster == cluster]
        needs = [(f"run {run.name}", self.needed.get(run.name, now)) for run in mine if run.progress.state not in FINAL]
        over = {run.name for run in mine if run.progress.state in FINAL}
        late = [job for job in self._live() if run_of_job(job) in over]  # from a submission that started before the end
        return [*drops, *needs, *((f"job {job}", self.put.get(job, now)) for job in late)]

    def _archived(self, run: Run) -> None:
        manifest = self.world.manifest(run)
        check(manifest is not None, f"run {run.name} is archived without a manifest")
        there = {blob.name: blob for blob in self.world.blobs.list(Place("output", f"{archive_folder(run)}/"))}
        names = set()
        for file in manifest["files"]:
            blob = there.get(f"{archive_folder(run)}/{file['name']}")
            check(
                blob and blob.size == file["size"], f"run {run.name}: file {file['name']} is not as the manifest says"
            )
            names.add(file["name"])
        fates = {fate["name"]: fate for fate in manifest["outputs"]}
        for output in run.asked.request.outputs:
            check(output in fates, f"run {run.name}: the manifest says nothing of output {output}")
        if run.progress.state is RunState.COMPLETED:
            self._holds_all(run, names)

    def _holds_all(self, run: Run, names: set[str]) -> None:
        for output in ("models", "metrics"):
            folder = f"trainyard/{run.name}/{output}/"
            for blob in self.world.blobs.list(Place("azureml-blobstore", folder)):
                name = f"{output}/{blob.name.removeprefix(folder)}"
                check(name in names, f"run {run.name}: its archive lacks {name}")
        check(LEFT not in {name.partition("/")[0] for name in names}, f"run {run.name}: checkpoints were copied")

    def _jobs_of(self, run: str) -> list[str]:
        return [job for job in self.world.jobs.jobs if run_of_job(job) == run]

    # --- after the healing -----------------------------------------------------------------------------------------

    def unsettled(self) -> list[str]:
        """Return what is unfinished, in words. At the end it must be empty."""
        rows = (row.value for row in self.world.drops.rows.values())
        drops = [f"drop {d.key} is {d.state}" for d in rows if d.state in OPEN]
        live = self._live()
        jobs = [f"job {job} is live" for job in live]
        runs = [row.value for row in self.world.runs.rows.values()]
        missed = [f"folder {key} has no drop" for key in self._uploaded() if key not in self.world.drops.rows]
        waiting = [f"{n} messages wait in {queue}" for queue, n in self.world.queues.counts(QUEUES).items() if n]
        return (
            drops
            + jobs
            + missed
            + waiting
            + [
                f"run {run.name} is {run.progress.state}, archived: {run.archive.at}"
                for run in runs
                if run.progress.state not in FINAL or (run.archive.at is None and run.archiving.gave_up_at is None)
            ]
        )

    def healed(self) -> None:
        """Raise Violation unless everything has ended and was announced."""
        for run in [row.value for row in self.world.runs.rows.values()]:
            if run.archive.at is not None and run.removed.at is None:
                self._archived(run)
            self._trained_on(run)
            known = set(workload(run).jobs(run).values())
            for job in self._jobs_of(run.name):
                check(job in known, f"job {job} is none of run {run.name}'s")
            if run.progress.state is RunState.COMPLETED and workload(run).has_own_nodes:
                ended = [self.world.jobs.jobs[job].raw for job in self._jobs_of(run.name)]
                check("Completed" in ended, f"run {run.name} is completed, its jobs are {ended}")
        self._contents()
        self._told()
        check_proofs(self.world)

    def _trained_on(self, run: Run) -> None:
        """Check that what the run says of its data is what the drop held when its jobs began and ended.

        A job whose cancel was lost may end after its run was archived. The archive has nothing that the job read later.
        """
        if not run.asked.fingerprint or run.archive.at is None:
            return
        assert isinstance(self.world.jobs, SimulatedJobs)
        moments = [each for job in self._jobs_of(run.name) for each in self.world.jobs.read.get(job, ())]
        read = [content for at, content in moments if at <= run.archive.at]
        same, says = [each == run.asked.fingerprint for each in read], run.data.trained_on
        check(says or run.progress.state is not RunState.COMPLETED, f"run {run.name} doesn't say what it trained on")
        check(says != "recorded" or all(same), f"run {run.name} says it trained on what is recorded, but did not")
        check(says != "other" or not all(same), f"run {run.name} says it trained on something else, but did not")
        self.simulation.counts[f"runs that trained on: {says or 'nothing'}"] += 1

    def _uploaded(self) -> list[DropKey]:
        names = self.world.blobs.containers.get("drops", {})
        keys = dict.fromkeys(DropKey.of(name) for name in names)
        return [key for key in keys if key.route in self.world.system.routes]

    def _contents(self) -> None:
        """Check that every drop's newest content was trained, unless its only event was lost."""
        for key, row in self.world.drops.rows.items():
            drop = row.value
            if drop.state is DropState.SEALED and key not in self.simulation.lost:
                blobs = [b for b in self.world.blobs.list(Place("drops", str(key))) if DropKey.of(b.name) == key]
                seen = survey(key, blobs)
                same = seen.fingerprint == drop.fingerprint or key in self.simulation.deleted
                check(same, f"drop {key} holds other content than run {drop.run} trained, and will stay so")

    def _told(self) -> None:
        aside = self.simulation.host.poison.get(Announce.queue, [])
        told = {(event.kind, event.subject) for event in self.world.events.published}
        told |= {(message["kind"], message["subject"]) for message in map(json.loads, aside) if "kind" in message}
        for key, row in self.world.drops.rows.items():
            for generation in range(1, row.value.generation + 1):
                subject = f"{key}/{generation}"
                if row.value.code != "bad_job":
                    check(("DropSealed", subject) in told, f"DropSealed {subject} was never told")
        for run in [row.value for row in self.world.runs.rows.values()]:
            submitted = any(job not in self.simulation.jobs.after_end for job in self._jobs_of(run.name))
            check(not submitted or ("RunSubmitted", run.name) in told, f"RunSubmitted {run.name} was never told")
            archived = run.archive.at is None or ("RunArchived", run.name) in told
            check(archived, f"RunArchived {run.name} was never told")
        for cluster in self.world.clusters.clusters:
            for decision in self.world.decisions.history(cluster)[:-1]:
                subject = f"{cluster}/{decision.at.isoformat()}"
                if decision.code != "at_zero" or ("ClusterAtZero", subject) in told:
                    continue
                self.simulation.counts["ClusterAtZero left out between two checks"] += 1
                check(subject in self.overlapped, f"ClusterAtZero {subject} was never told")


def fingerprint_now(world: World, job: str) -> str:
    """Return the fingerprint of the current content of the drop of a job's run."""
    drop = world.runs.rows[run_of_job(job)].value.asked.drop
    return survey(DropKey.of(drop), drop_blobs(world.blobs, DropKey.of(drop))).fingerprint if drop else ""

"""Carries out the decisions of `decide`: allocates nodes, starts attempts, and turns their outcomes into statuses."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
import uuid
from collections.abc import Iterable

from emulators.azureml.bodies.job_body import JobSpec
from emulators.azureml.kernel.errors import ArmError, NotFound
from emulators.azureml.kernel.models import TERMINAL, Cluster, Job, Json, Node, NodeState, Status, timestamp
from emulators.azureml.kernel.service_limits import job_days
from emulators.azureml.running.attempt import Attempt
from emulators.azureml.running.context import Outcome, Progress, Site, Stop, Work
from emulators.azureml.scheduling.decide import Decision, Start, Waiting, decide
from emulators.azureml.scheduling.parents import Means, Metrics, Parents
from emulators.azureml.scheduling.pipelines import PipelineDriver
from emulators.azureml.scheduling.simulation import Simulation
from emulators.azureml.scheduling.sweeps import SweepDriver
from emulators.azureml.workspace.workspace import Workspace
from emulators.private import remove_folder

log = logging.getLogger(__name__)

PREEMPTED = (  # https://github.com/Azure/MachineLearningNotebooks/issues/1242 has these words
    "AzureMLCompute job failed. PreemptionError: Nodes of this job got pre-empted. Check if the run has failed or "
    "restarted. Reason: Received pre-emption warning signal"
)
UNREADABLE = "What the workspace has stored of this job can't be read; the control plane's log has the traceback."

ALLOCATE_AGAIN_SECONDS = 1.0  # until refused nodes are requested again


class Scheduler:
    """Runs the clusters in one event loop. `wake` asks for a pass soon."""

    def __init__(self, workspace: Workspace, site: Site, wake: asyncio.Event, metrics: Metrics) -> None:
        lives = {seed.name: seed.simulated for seed in site.config.clusters if seed.simulated}
        self.simulation = Simulation(workspace, lives)
        means = Means(workspace, site, self.cancel, metrics)
        self._parents = Parents(means, {"Pipeline": PipelineDriver, "Sweep": SweepDriver})
        self._workspace = workspace
        self._site = site
        self._wake = wake
        self._attempts: dict[str, Attempt] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._stopping = False
        self._allocated = 0

    async def run(self) -> None:
        """Schedule until cancelled."""
        while True:
            self._wake.clear()
            self._parents.tend()
            delays = [self._pass(cluster) for cluster in self._workspace.every_cluster()]
            pause = min((delay for delay in delays if delay is not None), default=None)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._wake.wait()

    def wake(self) -> None:
        """Ask for a pass soon."""
        self._wake.set()

    async def stop(self) -> None:
        """End all attempts. Their jobs wait in the queue for the next start. No job starts afterwards."""
        self._stopping = True
        await self._parents.stop()
        for attempt in self._attempts.values():
            attempt.interrupt(Stop.SHUT_DOWN)
        await asyncio.gather(*self._tasks)

    def cancel(self, name: str) -> bool:
        """Ask a job to end. Returns False for an ended job, or for a job with only results left to save."""
        job = self._workspace.job(name)
        if job.status in TERMINAL or job.status is Status.FINALIZING:
            return False
        if job.status is not Status.CANCEL_REQUESTED:
            self._workspace.set_status(job, Status.CANCEL_REQUESTED)
        if name in self._attempts:
            self._attempts[name].interrupt(Stop.CANCELED)
        elif job.cluster:  # otherwise it ends after its child jobs
            self._end(job, Status.CANCELED)
        return True

    def note(self, name: str, words: str) -> None:
        """Add a line to the log of a running job."""
        if name in self._attempts:
            self._attempts[name].note(words)

    def preempt(self, cluster_name: str, which: int | str, requeues: bool = False) -> Json:
        """Preempt a node, given by its index in the list of nodes or by its id.

        The node's processes get SIGTERM, the grace period and SIGKILL. The job then fails: "You have to restart a
        preempted job" (https://learn.microsoft.com/azure/machine-learning/how-to-create-attach-compute-cluster). With
        `requeues`, the job goes back to the queue, as Azure's words "Check if the run has failed or restarted" allow.
        Returns the node and its job.
        """
        node = self.find(cluster_name, which)
        job, now = node.job, time.monotonic()
        node.enter(NodeState.PREEMPTED, now, job)
        if job in self._attempts:
            self._attempts[job].interrupt(Stop.PREEMPTED, node.id)
            self._attempts[job].requeues_if_preempted &= requeues
        self._wake.set()
        return {"node": node.id, "job": job}

    def find(self, cluster: str, which: int | str) -> Node:
        """Return a node, given by its index in the cluster's list or by its id. Raises NotFound."""
        return _find(self._workspace.cluster(cluster).nodes, which)

    def work(self) -> list[Work]:
        """Return the current work, by job and node."""
        return [work for attempt in self._attempts.values() for work in attempt.work()]

    async def delete_cluster(self, name: str) -> None:
        """Cancel the cluster's jobs, wait until they have ended, and delete the cluster."""
        while live := self._workspace.on_cluster(name, frozenset(Status) - TERMINAL):  # jobs may arrive meanwhile
            for job in live:
                self.cancel(job.name)
            await asyncio.sleep(0.05)
        self._workspace.forget_cluster(name)

    def _pass(self, cluster: Cluster) -> float | None:
        """Decide and act for one cluster. Returns the seconds until the next pass, or None if time alone changes
        nothing."""
        if self._stopping:
            return None
        if self.simulation.has(cluster.name):
            self.simulation.add_jobs(cluster)
            return None
        for job in self._workspace.on_cluster(cluster.name, frozenset({Status.NOT_STARTED})):
            self._workspace.set_status(job, Status.QUEUED)
        queued = self._workspace.on_cluster(cluster.name, frozenset({Status.QUEUED}))
        waiting = [Waiting(job.name, spec.nodes) for job in queued if (spec := self._spec(job))]
        now = time.monotonic()
        decision = decide(cluster.scale, cluster.nodes, waiting, now, self._site.config.node_start_seconds)
        self._act(cluster, decision, now)
        if cluster.refused:
            return min(ALLOCATE_AGAIN_SECONDS, decision.wake_in or ALLOCATE_AGAIN_SECONDS)
        return decision.wake_in

    def _spec(self, job: Job) -> JobSpec | None:
        """Return the parsed job. A job that can't be parsed, because it was stored under weaker checks, fails
        without affecting other jobs."""
        try:
            return self._workspace.command_spec(job)
        except ArmError as error:
            message = error.message
        except Exception:  # an error in one job does not stop the others
            log.exception("job %s can't be read", job.name)
            message = UNREADABLE
        self._workspace.set_status(job, Status.PREPARING)
        self._workspace.set_status(job, Status.FAILED, ended=timestamp(), error=_error(message))
        return None

    def _act(self, cluster: Cluster, decision: Decision, now: float) -> None:
        cluster.nodes = [node for node in cluster.nodes if node not in decision.forget]
        for node in decision.ready:
            node.enter(NodeState.IDLE, now)
        for start in decision.start:
            self._start(cluster, start, now)
        for node in decision.leave:
            node.enter(NodeState.LEAVING, now)
        given, error = self._allotted(cluster, decision.add)
        cluster.nodes += [self._new_node(cluster, now) for _ in range(given)]
        cluster.errors, cluster.refused = [error] if error else [], decision.add - given
        self._record_steadiness(cluster)
        for name, reason in decision.reasons.items():
            job = self._workspace.job(name)
            reason = f"{reason} {error['message']}" if error else reason
            if job.waiting != reason:
                self._workspace.update(job, waiting=reason)
        if given or decision.leave:
            self._wake.set()  # the decision sets new deadlines

    def _allotted(self, cluster: Cluster, nodes: int) -> tuple[int, Json | None]:
        if not nodes:
            return 0, None
        return self._workspace.faults.allotted(cluster, self._workspace.every_cluster(), nodes)

    def _record_steadiness(self, cluster: Cluster) -> None:
        """Record since when the cluster has been steady or resizing."""
        moving = any(node.state in (NodeState.PREPARING, NodeState.LEAVING) for node in cluster.nodes)
        if cluster.settled == moving:
            cluster.settled, cluster.settled_since = not moving, timestamp()

    def _new_node(self, cluster: Cluster, now: float) -> Node:
        self._allocated += 1
        suffix = "p" if cluster.low_priority else "d"
        return Node(f"tvmps_{uuid.uuid4().hex[:24]}_{suffix}", self._allocated, NodeState.PREPARING, now)

    def _start(self, cluster: Cluster, start: Start, now: float) -> None:
        job = self._workspace.job(start.job)
        for node in start.nodes:
            node.enter(NodeState.RUNNING, now, job.name)
        ids = tuple(node.id for node in start.nodes)
        begun = {"attempt": job.attempt + 1, "nodes": list(ids), "started": timestamp()}  # data are read from here on
        self._workspace.set_status(job, Status.PREPARING, **begun)
        lifetime = job_days(cluster.low_priority) * self._site.config.job_day_seconds
        self._attempts[job.name] = attempt = Attempt(self._site, job, self._workspace.command_spec(job), ids, lifetime)
        task = asyncio.create_task(self._attend(cluster, job, attempt))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _attend(self, cluster: Cluster, job: Job, attempt: Attempt) -> None:
        """Run an attempt to its end, record the outcome, and free the nodes."""
        progress = Progress(
            entered=lambda status: self._entered(job, status),
            logs=lambda names: self._workspace.update(job, logs=names),
        )
        try:
            outcome = await attempt.run(progress)
        except Exception:  # outermost: a fault of ours must end the job, not leave it running for ever
            log.exception("job %s: the attempt broke", job.name)
            outcome = Outcome(message="Internal error of the control plane; its log has the traceback.")
        now = time.monotonic()
        for node in cluster.nodes:
            if node.job == job.name:
                node.enter(NodeState.IDLE if node.state is NodeState.RUNNING else node.state, now)
        del self._attempts[job.name]
        self._conclude(cluster, job, outcome, attempt.requeues_if_preempted)
        self._wake.set()

    def _entered(self, job: Job, status: Status) -> None:
        if job.status is Status.CANCEL_REQUESTED:  # the attempt is stopped next
            return
        self._workspace.set_status(job, status)

    def _conclude(self, cluster: Cluster, job: Job, outcome: Outcome, requeues_if_preempted: bool) -> None:
        if job.status is Status.CANCEL_REQUESTED:
            self._end(job, Status.CANCELED)
        elif outcome.stop in (Stop.TIMED_OUT, Stop.OUTLIVED):
            message = _over_time(cluster, job, outcome.stop)
            self._workspace.set_status(job, Status.CANCEL_REQUESTED, error=_error(message))
            self._end(job, Status.CANCELED)
        elif outcome.stop is Stop.PREEMPTED and not requeues_if_preempted:
            self._end(job, Status.FAILED, _error(PREEMPTED))
        elif outcome.stop:
            preempted = outcome.stop is Stop.PREEMPTED
            notice = "a node was preempted" if preempted else "the control plane was restarted"
            self._workspace.set_status(job, Status.QUEUED, nodes=[], notice=notice)
        elif outcome.message:
            self._end(job, Status.FAILED, _error(outcome.message))
        else:
            self._end(job, Status.COMPLETED)

    def _end(self, job: Job, status: Status, error: Json | None = None) -> None:
        remove_folder(self._site.work / job.name)
        self._workspace.set_status(job, status, ended=timestamp(), nodes=[], error=error or job.error)


def _over_time(cluster: Cluster, job: Job, stop: Stop) -> str:
    """Return the message for a job that reached a time limit. No public source has Azure ML's own message for
    either limit."""
    if stop is Stop.TIMED_OUT:
        return f"The job was canceled because it ran longer than its limit of {job.properties['limits']['timeout']}."
    nodes, days = "low-priority" if cluster.low_priority else "dedicated", job_days(cluster.low_priority)
    return f"The job was canceled because it reached the maximum lifetime of a job on {nodes} nodes, {days} days."


def _error(message: str) -> Json:
    return {"error": {"code": "UserError", "message": message}}


def _find(nodes: Iterable[Node], which: int | str) -> Node:
    here = list(nodes)
    if isinstance(which, int) and 0 <= which < len(here):
        return here[which]
    for node in here:
        if node.id == which:
            return node
    raise NotFound(f"There is no node {which!r}; there are: {[node.id for node in here]}.")

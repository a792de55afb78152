"""One attempt at a job: download the data, run the ranks, upload the results, and return the outcome."""

from __future__ import annotations

import asyncio
import logging
import shutil
import tempfile
import time
from collections.abc import Awaitable
from dataclasses import replace
from pathlib import Path

from emulators.azureml.bodies.job_body import JobSpec, resolve
from emulators.azureml.environments.builder import JobEnvironment
from emulators.azureml.kernel.errors import DataError
from emulators.azureml.kernel.models import Job, Status
from emulators.azureml.running import mpi
from emulators.azureml.running.context import Outcome, Progress, Site, Stop, Work, run_place
from emulators.azureml.running.folders import Folders, Mover, Watched
from emulators.azureml.running.launchers import launched, with_launcher
from emulators.azureml.running.logs import LogCopy
from emulators.azureml.running.processes import Launch, RankProcess, free_ports
from emulators.azureml.running.run_logs import failure, heading, log_names
from emulators.azureml.running.uploads import Copies
from emulators.azureml.running.variables import Gang, environment
from emulators.azureml.running.views import views
from emulators.azureml.storage.blobs import Place
from emulators.azureml.storage.web_folder import WebFolder
from emulators.private import remove_folder

log = logging.getLogger(__name__)

BUILD_LOG = "azureml-logs/20_image_build_log.txt"  # Azure ML's log of building an environment
SHUT_DOWN_GRACE_SECONDS = 4.0  # at most, because stopping the control plane waits for it


class Attempt:
    """Runs a job once. `run` always returns an Outcome; `interrupt` makes it return early."""

    def __init__(self, site: Site, job: Job, spec: JobSpec, node_ids: tuple[str, ...], lifetime: float) -> None:
        self._site = site
        self._job = job
        self._spec = spec
        self._node_ids = node_ids
        self._dies_at = time.monotonic() + lifetime  # when Azure ML ends the job, whatever its own limit
        self._folders = Folders(site.work / job.name, job.attempt)
        self.requeues_if_preempted = True  # False once a node is preempted whose job must fail
        self._stop: Stop | None = None
        self._lost_node: int | None = None
        self._interrupted = asyncio.Event()
        self._ranks: list[RankProcess] = []
        self._logs: list[LogCopy] = []
        self._watched: list[Watched] = []
        self._mounted: list[Watched] = []
        self._scratch: Path | None = None
        self._build_log: list[str] = []
        self._own: dict[str, list[str]] = {}  # placeholders with a different value on each node

    def interrupt(self, stop: Stop, node_id: str | None = None) -> None:
        """Stop the attempt early. `node_id` is a lost node, whose processes are stopped first."""
        if self._stop is None or stop is Stop.CANCELED:
            self._stop = stop
        if node_id is not None and self._lost_node is None:
            self._lost_node = self._node_ids.index(node_id)
        self._interrupted.set()

    def note(self, words: str) -> None:
        """Add a line of the control plane to the log, once the log exists."""
        if self._logs:
            with self._logs[0].file.open("a") as file:
                file.write(f"[azureml] {words}\n")

    def work(self) -> list[Work]:
        """Return the current work of each node. mpirun's processes count for the first node."""
        node_of = self._spec.distribution.node_of
        by_node: dict[str, list[int]] = {}
        for rank, process in enumerate(self._ranks):
            if process.pid is not None:
                by_node.setdefault(self._node_ids[node_of(rank)], []).append(process.pid)
        variables = {**self._site.config.node_environment, **self._spec.variables}
        job, cluster, disk = self._job.name, self._spec.cluster, self._site.work
        return [Work(job, node, cluster, tuple(pids), disk, variables) for node, pids in by_node.items()]

    async def run(self, progress: Progress) -> Outcome:
        try:
            gang = await self._unless_interrupted(self._prepare(progress))
            if gang is None:
                return Outcome(self._stop)
            await self._launch(gang, progress)
            return await self._supervise(progress)
        except (DataError, OSError) as error:
            log.warning("job %s: %s", self._job.name, error)
            return Outcome(self._stop, message=str(error))
        finally:
            await asyncio.gather(*(rank.stop(0) for rank in self._ranks))
            for watched in self._mounted:
                self._site.mounts.release(watched)
            remove_folder(self._folders.run)
            if self._scratch:
                shutil.rmtree(self._scratch, ignore_errors=True)

    async def _unless_interrupted(self, work: Awaitable[Gang]) -> Gang | None:
        task, stop = asyncio.ensure_future(work), asyncio.ensure_future(self._interrupted.wait())
        try:
            await asyncio.wait({task, stop}, return_when=asyncio.FIRST_COMPLETED)
            return task.result() if task.done() and not self._interrupted.is_set() else None
        finally:
            task.cancel()
            stop.cancel()
            await asyncio.gather(task, stop, return_exceptions=True)

    async def _prepare(self, progress: Progress) -> Gang:
        spec, site = self._spec, self._site
        remove_folder(self._folders.run)
        made = asyncio.create_task(self._environment(progress))
        try:
            paths = await self._bring()
            job_environment = await made
        finally:
            made.cancel()
            await asyncio.gather(made, return_exceptions=True)
        self._scratch = Path(tempfile.mkdtemp(prefix="job-"))  # not in the job's folder: paths of sockets must be short
        ports = free_ports(spec.world_size)
        return Gang(self._node_ids, ports, paths, job_environment, site.service_url, self._scratch)

    async def _environment(self, progress: Progress) -> JobEnvironment:
        recipe = with_launcher(await self._site.recipe(self._spec.environment), self._spec.distribution)
        environments = self._site.environments
        if await environments.is_made(recipe):
            return await environments.give(recipe, self._folders.environment)
        log = self._folders.run / "environment.txt"
        log.parent.mkdir(parents=True, exist_ok=True)
        log.touch()
        copy = LogCopy(log, self._run_place(BUILD_LOG))
        await copy.open(self._site.blobs)
        self._build_log = [BUILD_LOG]
        progress.logs(self._build_log)
        async with Copies(self._site.blobs, [copy], []).running():
            try:
                return await environments.give(recipe, self._folders.environment, log)
            finally:
                await copy.push(self._site.blobs)

    async def _bring(self) -> dict[str, str]:
        """Download code and inputs, and prepare the outputs. Returns the values of the placeholders."""
        spec, site = self._spec, self._site
        mover = Mover(site.blobs, site.places, self._folders, self._mount, WebFolder(site.config.web_folder))
        await mover.bring_code(site.code_place(spec.code) if spec.code else None, spec.nodes)
        inputs = await mover.bring_inputs(spec)
        outputs, self._watched = await mover.prepare_outputs(spec)
        for node in range(spec.nodes):
            folder = self._folders.code(node) / "outputs"
            folder.mkdir(exist_ok=True)
            watch = Watched(folder, self._run_place("outputs"), mirror=False)
            watch.remember()  # files of the code snapshot are not outputs
            self._watched.append(watch)
        return {**inputs, **outputs}

    async def _mount(self, output: str, place: Place) -> list[Watched]:
        """Mount an output. The nodes of all jobs share one folder. With the fault `own`, each node gets its own
        folder, which may show less."""
        if not self._site.own_mounts():
            watched = await self._site.mounts.acquire(self._site.blobs, place)
            self._mounted.append(watched)
            return [watched]
        seen = views(self._folders.run / "mounts" / output, place, self._spec.nodes, self._spec.variables)
        for view in seen:
            await view.fill(self._site.blobs)
        self._own[f"outputs.{output}"] = [view.folder.as_posix() for view in seen]
        return list(seen)

    async def _launch(self, gang: Gang, progress: Progress) -> None:
        names = log_names(self._spec)
        (self._folders.logs / "user_logs").mkdir(parents=True)
        self._logs = [LogCopy(self._folders.logs / name, self._run_place(name)) for name in names]
        for copy in self._logs:
            copy.file.write_text(heading(self._job, gang.environment.notes))
            await copy.open(self._site.blobs)
        progress.logs([*self._build_log, *names])
        for launch in self._launches(gang):
            self._ranks.append(await RankProcess.start(launch, self._site.guard))
        progress.entered(Status.RUNNING)

    def _launches(self, gang: Gang) -> list[Launch]:
        """Return the launch of each rank; with Open MPI's mpirun, only the launch of mpirun."""
        spec, launches = self._spec, []
        for rank, copy in enumerate(self._logs):
            node = spec.distribution.node_of(rank)
            here = replace(gang, paths={**gang.paths, **{key: own[node] for key, own in self._own.items()}})
            variables = environment(self._site.config, self._job, spec, here, rank)
            command = launched(resolve(spec.command, here.paths), spec.distribution)
            launches.append(Launch(command, self._folders.code(node), variables, copy.file))
        program = mpi.mpirun(gang.environment) if spec.distribution.kind == "Mpi" else None
        return [mpi.leader(launches, program, self._folders.run / "mpi")] if program else launches

    async def _supervise(self, progress: Progress) -> Outcome:
        copies = Copies(self._site.blobs, self._logs, self._watched)
        async with copies.running():
            failed = await self._until_over()
            await self._stop_ranks()
        stop = self._stop  # later events do not change the result
        if stop is None:
            progress.entered(Status.FINALIZING)
        await copies.finish()
        if stop is None and failed is None:
            for output in self._spec.outputs:
                self._site.register(self._job, output)
        return Outcome(stop, None if stop or failed is None else await self._failure(failed))

    async def _until_over(self) -> int | None:
        """Return when every rank has ended well, with the first failed rank, or when the attempt is stopped.

        Parameter servers run until they are stopped, so they end after the last other rank.
        """
        ending = asyncio.create_task(self._first_failure())
        stop = asyncio.create_task(self._interrupted.wait())
        try:
            seconds, why = self._limit()
            await asyncio.wait({ending, stop}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if ending.done() and (not self._interrupted.is_set() or ending.result() is None):
                if self._stop is not Stop.CANCELED:
                    self._stop = None  # all ranks had ended before the interruption
                return ending.result()
            if not self._interrupted.is_set():
                self.interrupt(why)
            return None
        finally:
            ending.cancel()
            stop.cancel()
            await asyncio.gather(ending, stop, return_exceptions=True)

    def _limit(self) -> tuple[float, Stop]:
        """Return the processes' remaining seconds, and the reason for the stop at their end."""
        own, left = self._spec.timeout, max(0.0, self._dies_at - time.monotonic())
        return (own, Stop.TIMED_OUT) if own is not None and own <= left else (left, Stop.OUTLIVED)

    async def _first_failure(self) -> int | None:
        waiting = {asyncio.create_task(rank.wait()): number for number, rank in enumerate(self._ranks)}
        serves = self._spec.distribution.serves
        try:
            while any(not serves(number) for number in waiting.values()):
                done, _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                for task in sorted(done, key=lambda task: waiting[task]):
                    if task.result() != 0:
                        return waiting[task]
                    del waiting[task]
            return None
        finally:
            for task in waiting:
                task.cancel()

    async def _stop_ranks(self) -> None:
        """Stop every rank. Ranks of a lost node are stopped first, before the other ranks can learn of the loss."""
        grace = self._site.config.preemption_grace_seconds
        if self._stop is Stop.SHUT_DOWN:
            grace = min(grace, SHUT_DOWN_GRACE_SECONDS)
        if self._lost_node is not None:
            node_of = self._spec.distribution.node_of
            lost = [rank for number, rank in enumerate(self._ranks) if node_of(number) == self._lost_node]
            await asyncio.gather(*(rank.stop(grace) for rank in lost))
        await asyncio.gather(*(rank.stop(grace) for rank in self._ranks))

    async def _failure(self, rank: int) -> str:
        process = self._ranks[rank]
        return failure(self._spec, rank, await process.wait(), process.last_words)

    def _run_place(self, path: str) -> Place:
        return run_place(self._job.name, path)

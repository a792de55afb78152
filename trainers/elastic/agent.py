"""An agent whose workers stay alive between rounds: `elastic.launch --in-place`.

torchrun restarts its workers at each change of members, and most of that time is spent in `import torch`. This agent
starts its workers once, before their node joins, so a new node does not make the others wait. The workers stay alive
when a peer is lost, and the agent sends them the next meeting place (worker.py is the workers' side).

Over its socket, a worker reports that it waits for a round, that it has met the others, and that it makes steps. The
agent sends the meeting place, and whether the round ends at the next step or at once.
"""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import socket
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from torch.distributed.elastic.rendezvous.api import RendezvousClosedError, RendezvousError

from .member import Member
from .protocol import Change, Joined
from .worker import AGENT, Channel

# Seconds that an ending round has to reach its next step before it is cut.
CLEAN_BREAK = 3.0
# Workers stand still after STILL_SECONDS without a step. Slow workers get STILL_TIMES their slowest step, but at most
# STILL_LONGER seconds more than that step. A slow step that is mistaken for this costs reads and rings, but no node.
STILL_SECONDS, STILL_TIMES, STILL_LONGER = 1.0, 3, 3.0
# Seconds until a round's first step; later the workers count as standing still, because they may be unable to meet.
MEETING_SECONDS = 3.0
# After its round was cut, a worker has this many times a dead node's silence to wait for the next round or to end.
# Then it is killed and restarted, because the others wait for its node and have the state.
BACK_TIMES = 5
# After so many seconds, a node whose workers have not come back leaves the round if other nodes wait for it: the others
# go on without the node, which joins again when its workers are back.
RELEASE_SECONDS, RELEASE_PAUSE = 3.0, 1.0
# The most seconds that one check of a stopped worker counts: time in which this process is stopped too is ignored.
LOOK_SECONDS = 1.0
# Seconds that workers have to save and end after SIGTERM, and that finished agents wait for the others.
GRACE, EXIT_BARRIER = 30.0, 300.0
BAD_DATA, NOT_NOW = 2, 75

logger = logging.getLogger(__name__)


class WorkerEnded(Exception):
    """A worker ended while this node waited for a round."""


@dataclass
class Worker:
    """A worker process. `ready`: the worker has started and can wait for a round; `waits`: waiting for a round; `last`:
    the worker's last line.
    """

    process: subprocess.Popen[bytes]
    channel: Channel
    ready: bool = False
    waits: bool = False
    last: str = ""
    code: int | None = None
    given_up: bool = False
    stopped: float = 0.0  # seconds stopped, as far as checked

    def is_stopped(self) -> bool:
        """Return whether the process is stopped (SIGSTOP), according to the kernel."""
        with contextlib.suppress(OSError):
            return Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
        return False


@dataclass
class Pace:
    """The workers' reported progress."""

    began_at: float = 0.0
    ticked_at: float = 0.0
    slowest: float = 0.0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def stop(self) -> None:
        with self.lock:
            self.began_at = self.ticked_at = self.slowest = 0.0

    def start(self) -> None:
        with self.lock:
            self.began_at = time.monotonic()

    def tick(self) -> None:
        with self.lock:
            now = time.monotonic()
            if self.ticked_at:
                self.slowest = max(self.slowest * 0.95, now - self.ticked_at)
            self.ticked_at = now

    def stands_still(self) -> bool | None:
        with self.lock:
            if not self.ticked_at:
                over = self.began_at and time.monotonic() - self.began_at > MEETING_SECONDS
                return True if over else None
            late = min(STILL_TIMES * self.slowest, self.slowest + STILL_LONGER)
            return time.monotonic() - self.ticked_at > max(STILL_SECONDS, late)


@dataclass(frozen=True)
class Job:
    """The program of the workers, the number of workers, and how often they may fail."""

    command: Sequence[str]
    workers: int
    restarts: int
    run_id: str


class Agent:
    """The agent of one node. `run` returns the exit code and the reason."""

    def __init__(self, job: Job, member: Member) -> None:
        self._job, self._member = job, member
        self._events: queue.Queue[tuple[str, Any]] = queue.Queue()
        self._workers: list[Worker] = []
        self._pace = Pace()
        self._joined: Joined | None = None
        self._cut_at: float | None = None
        self._checked_at = 0.0
        self._back_at: float | None = None  # by when the workers of a cut round must wait for the next round
        self._release_at: float | None = None  # when the node leaves a cut round that the others have left
        self._restarts = job.restarts
        self.worked = False
        member.changed = lambda number, why: self._events.put(("changed", (number, why)))
        member.unsure = lambda: self._report("hold")
        member.stands_still = self._stands_still
        member.waited = self._watch_the_waiting

    # --- workers ------------------------------------------------------------------------------------------------------

    def _start(self, local_rank: int) -> Worker:
        ours, theirs = socket.socketpair()
        os.set_inheritable(theirs.fileno(), True)
        env = {
            **os.environ,
            AGENT: str(theirs.fileno()),
            "LOCAL_RANK": str(local_rank),
            "LOCAL_WORLD_SIZE": str(self._job.workers),
            "TORCHELASTIC_RUN_ID": self._job.run_id,
        }
        if self._job.workers > 1:
            env.setdefault("OMP_NUM_THREADS", "1")
        process = subprocess.Popen(self._job.command, env=env, pass_fds=[theirs.fileno()])
        theirs.close()
        worker = Worker(process, Channel(ours))
        threading.Thread(target=self._hear, args=(worker,), daemon=True).start()
        return worker

    def _hear(self, worker: Worker) -> None:
        for message in worker.channel.messages():
            if message["say"] == "tick":
                self._pace.tick()
            elif message["say"] == "last":
                worker.last, worker.code = message["line"], message["code"]
            else:
                self._events.put((message["say"], (worker, message)))
        worker.process.wait()
        self._events.put(("ended", worker))

    def _report(self, what: str) -> None:
        """Report a fact about the current round, if any."""
        if self._joined:
            for worker in self._workers:
                worker.channel.send(do=what, round=self._joined.round.number)

    # --- the run ------------------------------------------------------------------------------------------------------

    def run(self) -> tuple[int, str]:
        """Start the workers, and lead them through the rounds to the end. Call `end` afterwards."""
        self._workers = [self._start(rank) for rank in range(self._job.workers)]
        while True:
            if all(worker.waits for worker in self._workers) and (end := self._next_round()):
                return end
            if end := self._handle(*self._next_event()):
                return end

    def _next_event(self) -> tuple[str, Any]:
        while True:
            dues = (self._cut_at, self._release_at, self._back_at)
            due = min((at for at in dues if at is not None), default=None)
            try:
                return self._events.get(timeout=None if due is None else max(0.0, due - time.monotonic()))
            except queue.Empty:
                if due == self._cut_at:
                    self._cut()
                elif due == self._release_at:
                    self._release()
                else:
                    self._give_up()

    def _cut(self) -> None:
        """End the round now. The round's workers must return in time."""
        self._cut_at = None
        if self._back_at is None:
            self._back_at = time.monotonic() + BACK_TIMES * self._member.silence
            self._release_at = time.monotonic() + RELEASE_SECONDS
        self._report("cut")

    def _stands_still(self) -> bool | None:
        """Return whether the workers make no steps. A worker that is stopped for as long as a dead node's silence
        is abandoned if other nodes have its state and wait for it."""
        still, joined = self._pace.stands_still(), self._joined
        awaited = bool(still and joined and sum(member.workers for member in joined.round.team) > 1)
        now, before = time.monotonic(), self._checked_at
        self._checked_at = now
        for worker in self._workers:
            stopped = awaited and worker.is_stopped()
            worker.stopped = worker.stopped + min(now - before, LOOK_SECONDS) if stopped else 0.0
            if worker.stopped > self._member.silence and not worker.given_up:
                self._kill(worker, "was stopped, and its team waits for it")
        return still

    def _release(self) -> None:
        """Leave the round, so that the others need not wait for this node's workers, if any of the others waits.

        Otherwise look again later: a newcomer without a state must not begin while all nodes with the state are away.
        """
        self._release_at = None
        if not self._member.is_awaited():
            self._release_at = time.monotonic() + RELEASE_PAUSE
            return
        logger.warning("the workers did not come back after their round; the others go on without this node")
        self._member.step_out()

    def _give_up(self) -> None:
        self._release_at = self._back_at = None
        for worker in self._workers:
            if worker.ready and not worker.waits and worker.process.poll() is None:
                self._kill(worker, "did not come back after its round")

    def _kill(self, worker: Worker, why: str) -> None:
        logger.warning("process %d %s; it is killed", worker.process.pid, why)
        worker.given_up = True
        worker.process.kill()

    def _handle(self, kind: str, what: Any) -> tuple[int, str] | None:
        if kind == "waits":
            worker, _ = what
            worker.ready = worker.waits = True
            if not all(each.waits for each in self._workers):
                self._cut()  # the other workers of this node return too
        elif kind == "met":
            self.worked = True
        elif kind == "stopped":
            self._confirm(*what)
        elif kind == "changed":
            self._end_round(*what)
        elif kind == "ended":
            return self._ended(what)
        return None

    def _next_round(self) -> tuple[int, str] | None:
        self._cut_at = self._release_at = self._back_at = self._joined = None
        self._pace.stop()
        try:
            self._joined = joined = self._member.join()
            self._pace.start()
        except WorkerEnded:
            self._member.step_out()
            return None
        except RendezvousClosedError as error:
            for worker in self._workers:
                worker.channel.send(do="over", why=str(error))
            return NOT_NOW, f"not needed: run {self._job.run_id} is over: {error}"
        before = sum(member.workers for member in joined.round.team[: joined.rank])
        world = sum(member.workers for member in joined.round.team)
        for local_rank, worker in enumerate(self._workers):
            worker.waits = False
            worker.channel.send(
                do="meet",
                round=joined.round.number,
                rank=before + local_rank,
                world_size=world,
                local_rank=local_rank,
                local_world_size=len(self._workers),
                address=joined.round.address,
                port=joined.round.port,
            )
        return None

    def _watch_the_waiting(self) -> None:
        """During this node's wait for a round, check that every worker is alive."""
        if any(worker.process.poll() is not None for worker in self._workers):
            raise WorkerEnded

    def _end_round(self, number: int, why: list[Change]) -> None:
        """End the round in which the change was seen, if it is still the current round: at the next step if all
        members are alive, otherwise now."""
        if not self._joined or not self._joined.round.number == self._member.me.joined == number:
            return
        logger.info("the team meets again: %s", "; ".join(map(str, why)))
        self._report("regroup")
        if not all(change.all_live for change in why):
            self._cut()
        elif self._cut_at is None:
            self._cut_at = time.monotonic() + CLEAN_BREAK

    def _confirm(self, worker: Worker, message: dict[str, Any]) -> None:
        """Check the round after a worker was stopped or held for a while. The worker may continue only if no other
        node can have replaced its round."""
        if self._member.confirm(message["round"]):
            worker.channel.send(do="go on")
        else:
            worker.channel.send(do="cut", round=message["round"])

    # --- ends ---------------------------------------------------------------------------------------------------------

    def _ended(self, worker: Worker) -> tuple[int, str] | None:
        code = _code(worker.process.returncode)
        which = f"process {worker.process.pid} ended with {code}"
        if code == 0:
            if any(each.process.poll() is None for each in self._workers):
                return None
            try:
                self._member.finish(EXIT_BARRIER)
            except RendezvousError as error:  # like torchrun's agent: the workers' result stands
                logger.warning("the work is done, and the others could not be told: %s", error)
            return 0, "done: all its workers ended with 0"
        if code == NOT_NOW and worker.last:
            return NOT_NOW, worker.last
        if worker.given_up:
            self._restarts += 1  # not a failure of the script
        if code == BAD_DATA or not self._restarts:
            self._member.close(worker.last or which)
            return code, f"worker failed: {which}" + (f": {worker.last}" if worker.last else "")
        logger.warning("%s; it is started again (%d more times)", which, self._restarts)
        self._restarts -= 1
        self._member.step_out()
        self._report("cut")
        worker.channel.close()
        place = self._workers.index(worker)
        self._workers[place] = self._start(place)
        return None

    def stop(self, number: int) -> None:
        """Leave the run: announce it, let the workers finish their step, and give them time to save."""
        self._member.announce()
        deadline = time.monotonic() + GRACE
        for worker in self._workers:
            if worker.process.poll() is None:
                worker.process.send_signal(number)
        for worker in self._workers:
            try:
                worker.process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                worker.process.kill()
        self._member.leave()

    def end(self) -> None:
        """End the workers."""
        for worker in self._workers:
            if worker.process.poll() is None:
                worker.process.kill()
            worker.process.wait()
            worker.channel.close()


def _code(status: int) -> int:
    return status if status >= 0 else 128 - status

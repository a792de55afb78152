"""Stops every process at one step after a SIGTERM for any of them."""

from __future__ import annotations

import signal
import sys
from collections.abc import Mapping
from types import FrameType
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist
from ending import write_line

if TYPE_CHECKING:
    from elastic.eviction import EvictionWatch
    from elastic.worker import Team


class Stopped(Exception):
    """A process received SIGTERM. Every process raises this exception at the same step. `all_go`: no process
    continues elsewhere."""

    def __init__(self, text: str, all_go: bool = True) -> None:
        super().__init__(text)
        self.all_go = all_go


class StopRequest:
    """A SIGTERM that every process obeys at one step.

    Azure ML sends SIGTERM before it removes a low-priority node, and when a job is canceled. If only the signalled
    process left, the others would wait forever in a collective operation. With a `team`, processes that got no signal
    continue in the team's next round.

    Azure may also announce an eviction and then kill the node without a SIGTERM. For that reason all processes save a
    checkpoint when an eviction is announced, and continue: a job that ended by itself would count as failed instead of
    preempted.
    """

    def __init__(self, team: Team | None = None) -> None:
        self.received = False
        self._save_soon = False  # equal in all processes: a node will be removed
        self._team = team
        self._announced = False
        self._watch: EvictionWatch | None = None

    def listen(self) -> None:
        """Make SIGTERM set `received` instead of ending the process."""
        signal.signal(signal.SIGTERM, self._note)

    def watch(self, environ: Mapping[str, str]) -> None:
        """Start polling for announced evictions, in one process of each node."""
        if environ.get("LOCAL_RANK", "0") == "0":
            from elastic import eviction

            self._watch = eviction.watch(environ, self._hear)

    def end(self) -> None:
        """Stop polling for announced evictions."""
        if self._watch:
            self._watch.stop()

    def _hear(self) -> None:
        self._announced = True

    def _note(self, _signum: int, _frame: FrameType | None) -> None:
        self.received = True

    def check(self, step: int) -> None:
        """Raise Stopped in every process if any process has received SIGTERM. Every process must call this method at
        every step.

        In a team, processes without a SIGTERM raise RoundEnded instead, and all processes raise RoundEnded when members
        join or leave.
        """
        if self._team:
            return self._check_team(self._team, step)
        # Two numbers per step: 0.2 ms between two processes of one machine. On the CPU even if the training uses a GPU.
        me, announced = dist.get_rank() + 1, self._announced
        flags = torch.tensor([me if self.received else 0, me if announced else 0])
        dist.all_reduce(flags, op=dist.ReduceOp.MAX)
        by, going = flags.tolist()
        if by:
            raise Stopped(f"rank {by - 1} got SIGTERM; {step} steps were done")
        if announced:
            self._announced = False  # all processes know it now
        if going == me:
            write_line(
                f"rank {me - 1}: Azure takes this node away soon; a checkpoint is due at step {step}", sys.stdout
            )
        self._save_soon = self._save_soon or bool(going)
        return None

    def saves_now(self) -> bool:
        """Return whether an eviction was announced since the last save. Each call counts as a save."""
        soon, self._save_soon = self._save_soon, False
        return soon

    def _check_team(self, team: Team, step: int) -> None:
        from elastic.worker import RoundEnded

        team.tick()
        flags = torch.tensor([dist.get_rank() + 1 if self.received else 0, int(team.wanted), int(not self.received)])
        dist.all_reduce(flags, op=dist.ReduceOp.MAX)
        by, wanted, some_stay = flags.tolist()
        if self.received:
            raise Stopped(f"rank {by - 1} got SIGTERM; {step} steps were done", all_go=not some_stay)
        if by or wanted:
            raise RoundEnded(f"rank {by - 1} leaves" if by else "members come or go")

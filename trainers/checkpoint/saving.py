"""The times of checkpoints, the choice of the checkpoint to load, and the log lines about both."""

from __future__ import annotations

import json
import shutil
import sys
import time
import warnings
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import dist
import torch.distributed as c10d
import torch.distributed.checkpoint as dcp
from files import DataError
from torch.distributed.checkpoint.api import CheckpointException  # not an Exception

from . import folder as on_disk
from .folder import UNFINISHED, Damaged, check_sizes, check_sums, newest_of, order_of, read_marker, reason_of, sum_of
from .staging import Staging, wait_for_copies
from .state import broadcast, first, from_rank_0, put, random_state, set_random_state, sharded, tree_of
from .writer import Writer


class CheckpointError(RuntimeError):
    """Checkpoints exist, but none can be read."""


GROWS = "epochs"  # the key of `fixed` that may be larger than in a checkpoint


class Checkpoints:
    """The checkpoints of a run in `folder`, which every process can read and write. If `folder` is None, no method does
    anything.

    Each process creates one instance, inside `dist.run`, and all processes make the same calls. `every` is the number
    of steps between two checkpoints (0: none within an epoch), `keep` the number of complete checkpoints that are kept.
    A checkpoint with other values of `fixed`, such as the batch size, is refused, because the continued training would
    differ; only the number of epochs may grow.

    `state` maps names to objects with state_dict and load_state_dict: at most one module (plain, DDP or FSDP2) with its
    optimizers, and any other objects whose state is the same in every process. The state of PyTorch's random generators
    is added for each process, and restored if the number of processes is the same.
    """

    def __init__(
        self,
        folder: Path | None,
        place: dist.Place,
        every: int = 0,
        keep: int = 2,
        fixed: Mapping[str, object] | None = None,
    ) -> None:
        self.folder = folder
        self._place, self._every, self._keep = place, every, keep
        self._fixed = json.loads(json.dumps(fixed or {}))  # in the form that JSON returns
        self.start = 0  # the step that `restore` loaded
        self._number = 0
        self._writing: Future[None] | None = None
        self._round = place.round
        self._failing = ""
        self._staging = Staging()
        if folder:
            self._group = place.new_group()
            self._thread = ThreadPoolExecutor(1, "checkpoint")

    def due(self, step: int, stop: dist.StopRequest) -> bool:
        """Return whether to make a checkpoint after `step` steps: at the chosen interval, and when a node will be
        removed.

        A further checkpoint is always made after each epoch.
        """
        leaves = stop.saves_now()
        return self.folder is not None and (leaves or (self._every > 0 and step % self._every == 0))

    def restore(self, state: Mapping[str, Any], live: Mapping[str, Any] | None = None) -> dict[str, Any] | None:
        """Load the run's newest state into `state`. Return that point's facts and `world_size`, or None at the start.

        `live`: the facts of the state that this process holds in memory, from an earlier team of the run. If any
        process holds a state, the most advanced process sends its state to the processes that are behind, and no file
        is read. Otherwise the newest complete checkpoint is loaded; if any process can't read a checkpoint, the next
        older one is tried. Raises DataError if `fixed` differs, and CheckpointError if a complete checkpoint existed
        but none can be loaded.
        """
        wait_for_copies(state)
        names = from_rank_0(on_disk.names_in(self.folder) if self.folder and self._place.rank == 0 else [])
        self._note_names(names)
        if facts := self._from_memory(state, live):  # no exchange follows, so a broken one leaves the state unchanged
            self.start = facts["step"]
            return facts
        if not self.folder:
            return None
        skipped: list[str] = []
        for name in sorted(names, key=order_of, reverse=True):
            marker, why = self._checked(name)
            if marker:
                self._check_fixed(name, marker["fixed"])
                error = first(self._load(self.folder / name, state, marker["world_size"]))
                if not error:
                    return self._resumed(name, marker)
                why = error
            skipped.append(f"{name}: {why}")
            self._say(f"checkpoint {skipped[-1]}; it is skipped")
        self._start_over(skipped)
        return None

    def _from_memory(self, state: Mapping[str, Any], live: Mapping[str, Any] | None) -> dict[str, Any] | None:
        """Take the state of the most advanced process. Returns the facts, or None without any."""
        if not self._place.team:
            return None
        steps = [-1] * self._place.world_size
        c10d.all_gather_object(steps, live["step"] if live and not sharded(state) else -1)
        furthest = max(steps)
        if furthest < 0:
            return None
        source = steps.index(furthest)
        box: list[Any] = [dict(live) if live and source == self._place.rank else None]
        c10d.broadcast_object_list(box, source)
        if any(step != furthest for step in steps):
            content = broadcast(tree_of(state, live=True) if source == self._place.rank else None, source)
            if steps[self._place.rank] != furthest:
                put(state, content)
            behind = [rank for rank, step in enumerate(steps) if step != furthest]
            self._say(f"step {furthest} goes on from the memory of rank {source}, also in ranks {behind}")
        return {**box[0], "world_size": self._place.world_size}

    def _note_names(self, names: list[str]) -> None:
        self._number = max((order_of(name)[1] for name in names), default=0)
        self._round = max([self._place.round, *(order_of(name)[0] for name in names)])

    def _checked(self, name: str) -> tuple[dict[str, Any] | None, str]:
        """Return the marker of a checkpoint that every process found intact, or the reason for skipping the checkpoint.

        Each process checks all sizes, as its own node sees them, and its share of the contents.
        """
        assert self.folder
        place = self._place
        try:
            marker = read_marker(self.folder / name)
            check_sizes(self.folder / name, marker)
            check_sums(self.folder / name, marker, place.rank, place.world_size)
            why = ""
        except Damaged as damage:
            marker, why = None, str(damage)
        why = first(why)
        return (None if why else marker), why

    def _resumed(self, name: str, marker: dict[str, Any]) -> dict[str, Any]:
        facts = {**marker["facts"], "world_size": marker["world_size"]}
        self.start = facts["step"]
        self._say(f"resumed from {name}: " + ", ".join(f"{key} {value}" for key, value in facts.items()))
        return facts

    def _start_over(self, skipped: list[str]) -> None:
        """Log that the training begins at the first step although checkpoints exist. Raises CheckpointError if any
        checkpoint was ever complete.

        A checkpoint with a marker was complete. If it can't be verified, the mount may be at fault, because mounts may
        show an old state.
        """
        assert self.folder
        newest = from_rank_0([newest_of(self.folder)] if self._place.rank == 0 else [])[0]
        if newest or any(UNFINISHED not in why for why in skipped):
            first = skipped[0] if skipped else f"{newest} is not there"
            raise CheckpointError(
                f"{self.folder}: no complete checkpoint could be loaded; the newest: {first}. Give another "
                "--checkpoint-dir, or remove this one, to start over"
            )
        if skipped:
            self._say(f"none of {len(skipped)} checkpoints was ever complete; the training starts at its first step")

    def save(self, state: Mapping[str, Any], facts: Mapping[str, Any]) -> None:
        """Return at once; a thread copies `state` and writes the copy with `facts`, JSON with epoch, samples and step.

        Values that an optimizer's step changes are copied before the next step; all other values are copied now. If the
        previous save still runs, this call waits for it. A failed save is logged, and the next save tries again. Before
        the first step nothing is saved.
        """
        if not self.folder or not facts["step"]:
            return
        self._finish_writing()
        self._number += 1
        suffix = f"-round-{self._round}" if self._round else ""
        path = self.folder / f"{self._number:06d}-step-{facts['step']}{suffix}"
        tree = {**tree_of(state), "random": {f"rank-{self._place.rank}": random_state()}}
        self._staging.begin(tree, state)
        marker = {"facts": dict(facts), "fixed": self._fixed, "world_size": self._place.world_size}
        self._writing = self._thread.submit(self._write, path, marker)

    @property
    def writing(self) -> bool:
        """Whether a save is in progress."""
        return self._writing is not None and not self._writing.done()

    def finish(self) -> None:
        """Wait until the last save is complete, or has failed and was logged."""
        self._finish_writing()

    def _finish_writing(self) -> None:
        if not self._writing:
            return
        writing, self._writing = self._writing, None
        error = writing.exception()
        if not error:
            if self._failing:
                self._say(f"checkpoints can be written to {self.folder} again")
            self._failing = ""
            return
        self._failing = reason_of(error)
        self._say(
            f"a checkpoint could not be written to {self.folder}: {self._failing}; the training continues without it"
        )

    def _write(self, path: Path, marker: dict[str, Any]) -> None:
        """In the thread: write the copy, the files and the checksums, then rank 0's marker, and delete older
        checkpoints."""
        try:
            metadata = dcp.save(self._staging.finish(), storage_writer=Writer(path), process_group=self._group)
            mine = {file.name: sum_of(file) for file in path.glob(f"__{self._place.rank}_*")}
            sums: list[dict[str, str]] = [{}] * self._place.world_size
            c10d.all_gather_object(sums, mine, self._group)
        except BaseException:
            if self._place.rank == 0:  # an incomplete checkpoint would only take space
                shutil.rmtree(path, ignore_errors=True)
            raise
        if self._place.rank:
            return
        # Sizes as the writers know them: a mount may not show another node's files yet.
        sizes: dict[str, int] = {".metadata": (path / ".metadata").stat().st_size}
        for part in metadata.storage_data.values():
            sizes[part.relative_path] = max(sizes.get(part.relative_path, 0), part.offset + part.length)
        known = {
            ".metadata": sum_of(path / ".metadata"),
            **{name: text for part in sums for name, text in part.items()},
        }
        on_disk.complete(path, {**marker, "time": round(time.time(), 3), "files": sizes, "sha256": known})
        on_disk.prune(path.parent, self._keep)

    def _check_fixed(self, name: str, fixed: dict[str, object]) -> None:
        for key in sorted({*fixed, *self._fixed}):
            before, now = fixed.get(key), self._fixed.get(key)
            longer = key == GROWS and isinstance(before, int) and isinstance(now, int) and now > before
            if before != now and not longer:
                raise DataError(
                    f"{self.folder}: expected checkpoints with {key} {self._fixed.get(key)}, found {key} "
                    f"{fixed.get(key)} in {name}; give the settings it was made with, or another --checkpoint-dir"
                )

    def _load(self, path: Path, state: Mapping[str, Any], world_size: int) -> str | None:
        """Load into `state`, each process for itself. Return the error text, or None."""
        tree = tree_of(state)
        mine = f"rank-{self._place.rank}"
        if world_size == self._place.world_size:
            tree["random"] = {mine: random_state()}
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "torch.distributed is disabled")  # printed whenever no_dist is set
                dcp.load(tree, storage_reader=dcp.FileSystemReader(path), no_dist=True)
        except (Exception, CheckpointException) as error:  # noqa: BLE001 (a damaged file makes the reader raise anything)
            return f"it could not be loaded: {reason_of(error)}"
        put(state, tree)
        if "random" in tree:
            set_random_state(tree["random"][mine])
        return None

    def _say(self, text: str) -> None:
        if self._place.rank == 0:
            dist.write_line(text, sys.stdout)

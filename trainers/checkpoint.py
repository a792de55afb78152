"""Checkpoints that outlive any process, node and number of processes.

Why torch.distributed.checkpoint (DCP), and what is added to it:

DCP writes what each process holds, in parallel, and reads it back for any other number of processes, FSDP2's shards
included. A file of safetensors from rank 0 would be simpler, but needs the whole state in one memory, and resharding
by hand. DCP alone isn't enough on a mounted blob container: nothing there is renamed atomically, so a crash may leave
half of it, and nothing notices a byte that changed. Here each checkpoint has a folder of its own, and `complete.json`,
which names the files with their sizes and checksums, is written last, after the files were read back. A folder whose
marker is missing, broken, or not true of its files is passed over, and the log says why. `newest.json` beside the
folders names the newest that was complete: where it is there, a training never starts over in silence.

The state is copied to memory at once, and a thread writes it while the training goes on. That thread has a gloo group
of its own, since two threads must not exchange over one. Nothing is on the disk of a node: the next processes may run
on other machines, and be more or fewer. A save that fails (disk full, read-only mount) is told and the training goes
on: what it would cost to lose is less than what it would cost to stop.

While a process lives that has the state of a step in its memory, nobody reads a checkpoint: it sends its state to those
that are new or a step behind.

DCP's files are pickles. They are safe as long as nobody but the run itself can write into the folder.
"""

from __future__ import annotations

import argparse
import copy
import errno
import hashlib
import io
import json
import re
import shutil
import sys
import time
import warnings
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dist
import torch
import torch.distributed as c10d
import torch.distributed.checkpoint as dcp
from files import DataError, replacing
from torch import nn
from torch.distributed.checkpoint import state_dict as dcp_state
from torch.distributed.checkpoint.api import CheckpointException  # not an Exception
from torch.distributed.tensor import DTensor
from torch.optim.lr_scheduler import LRScheduler

MARKER = "complete.json"
NEWEST = "newest.json"
# The number of the save, how many steps were done, and in an elastic run which team it was: what a node writes that was
# stopped, and wakes up after the others went on, is older than what they write.
NAME = re.compile(r"(\d{6})-step-\d+(?:-round-(\d+))?")


class CheckpointError(RuntimeError):
    """There are checkpoints, and none can be read."""


GROWS = "epochs"  # what of `fixed` may be more than in a checkpoint


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add --checkpoint-dir and --checkpoint-every."""
    group = parser.add_argument_group("checkpoints", "started again with the same folder, the training goes on")
    group.add_argument("--checkpoint-dir", type=Path, help="where checkpoints are kept (default: none are made)")
    group.add_argument(
        "--checkpoint-every",
        type=_interval,
        default=0,
        metavar="STEPS|epoch",
        help="steps between two checkpoints, beside the one after each epoch (default: epoch)",
    )


def _interval(text: str) -> int:
    """Steps; 0 stands for `epoch`."""
    if text == "epoch":
        return 0
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a number of steps, at least 1, or epoch, not {text!r}")
    return int(text)


@dataclass
class Position:
    """How far a training is. `samples` of `epoch` are done, counted over all processes; the first epoch is 1."""

    epoch: int = 1
    samples: int = 0
    step: int = 0

    @classmethod
    def of(cls, facts: Mapping[str, Any] | None) -> Position:
        """Where the checkpoint with these facts was made, or the start."""
        return cls(facts["epoch"], facts["samples"], facts["step"]) if facts else cls()


def dice(*numbers: int) -> torch.Generator:
    """A generator that throws the same in every process and after every restart, fixed by e.g. (seed, epoch, step).

    Whoever draws an epoch's order and each step's augmentation from such dice needs no generator's state in a
    checkpoint, and doesn't depend on the number of processes.
    """
    digest = hashlib.blake2b(repr(numbers).encode(), digest_size=8).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest, "big") >> 1)


class OwnLength:
    """A learning rate's schedule, for a checkpoint's state: its step comes back, its length is this training's own.

    So a training that goes on with more epochs has the rate that the longer training has at this step.
    """

    def __init__(self, schedule: LRScheduler) -> None:
        self._schedule = schedule

    def state_dict(self) -> dict[str, Any]:
        return self._schedule.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """The optimizer's own state is to be loaded before, since the rate is set in it."""
        place = {name: state[name] for name in ("last_epoch", "_step_count")}
        self._schedule.load_state_dict({**self._schedule.state_dict(), **place})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch wants get_lr to be called by step alone
            rates = self._schedule.get_lr()
        for group, rate in zip(self._schedule.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate


class Checkpoints:
    """The checkpoints of a run in `folder`, which every process can read and write; None: no method does anything.

    Each process makes one, inside `dist.run`, and all call each method alike. `every` is the number of steps between
    two (0: none within an epoch), `keep` how many complete ones are kept. A checkpoint made with other values of
    `fixed`, such as the batch size, is refused, since training on from it would mean something else; only epochs may be
    more than they were.

    `state` maps names to what has state_dict and load_state_dict: at most one module, plain, DDP or FSDP2, with its
    optimizers, and anything else whose state is the same in every process. PyTorch's random numbers are added for
    each process; they come back when the number of processes is the same.
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
        self._fixed = json.loads(json.dumps(fixed or {}))  # as it will be read back
        self.start = 0  # the step that `restore` came to
        self._number = 0
        self._writing: Future[None] | None = None
        self._round = place.round
        self._failing = ""
        self._staged: dict[str, Any] = {}
        if folder:
            self._group = place.new_group()
            self._thread = ThreadPoolExecutor(1, "checkpoint")

    def due(self, step: int, stop: dist.StopRequest) -> bool:
        """Whether a checkpoint is to be made when `step` steps are done: that often, and when a node is to go.

        After each epoch one is made anyway.
        """
        leaves = stop.saves_now()
        return self.folder is not None and (leaves or (self._every > 0 and step % self._every == 0))

    def restore(self, state: Mapping[str, Any], live: Mapping[str, Any] | None = None) -> dict[str, Any] | None:
        """Bring `state` as far as the run is. Returns that point's facts and `world_size`, or None at the start.

        `live`: the facts of what this process has in memory, from an earlier team of the run. If any process has some,
        the one that is furthest sends its state to those that are not; no file is read. Otherwise the newest complete
        checkpoint is loaded; one that any process can't read is left for the next older one. Raises DataError where
        `fixed` differs, and CheckpointError if there was a complete one and none can be loaded.
        """
        names = _from_rank_0(self._names() if self.folder and self._place.rank == 0 else [])
        self._note_names(names)
        if facts := self._from_memory(state, live):  # no exchange after it: what breaks off leaves the state as it was
            self.start = facts["step"]
            return facts
        if not self.folder:
            return None
        skipped: list[str] = []
        for name in sorted(names, key=_order, reverse=True):
            marker, why = self._checked(name)
            if marker:
                self._check_fixed(name, marker["fixed"])
                error = _first(self._load(self.folder / name, state, marker["world_size"]))
                if not error:
                    return self._resumed(name, marker)
                why = error
            skipped.append(f"{name}: {why}")
            self._say(f"checkpoint {skipped[-1]}; it is passed over")
        self._start_over(skipped)
        return None

    def _from_memory(self, state: Mapping[str, Any], live: Mapping[str, Any] | None) -> dict[str, Any] | None:
        """Take the state of the process that is furthest. Returns its facts, or None if none has any."""
        if not self._place.team:
            return None
        steps = [-1] * self._place.world_size
        c10d.all_gather_object(steps, live["step"] if live and not _sharded(state) else -1)
        furthest = max(steps)
        if furthest < 0:
            return None
        source = steps.index(furthest)
        box: list[Any] = [dict(live) if live and source == self._place.rank else None]
        c10d.broadcast_object_list(box, source)
        if any(step != furthest for step in steps):
            content = _broadcast(_tree(state) if source == self._place.rank else None, source)
            if steps[self._place.rank] != furthest:
                _put(state, content)
            behind = [rank for rank, step in enumerate(steps) if step != furthest]
            self._say(f"step {furthest} goes on from the memory of rank {source}, also in ranks {behind}")
        return {**box[0], "world_size": self._place.world_size}

    def _note_names(self, names: list[str]) -> None:
        self._number = max((_order(name)[1] for name in names), default=0)
        self._round = max([self._place.round, *(_order(name)[0] for name in names)])

    def _checked(self, name: str) -> tuple[dict[str, Any] | None, str]:
        """The marker of a checkpoint that all processes found true of its files, or why it is passed over.

        Each process looks at all sizes, as its own node sees them, and at its share of the contents.
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
        why = _first(why)
        return (None if why else marker), why

    def _resumed(self, name: str, marker: dict[str, Any]) -> dict[str, Any]:
        facts = {**marker["facts"], "world_size": marker["world_size"]}
        self.start = facts["step"]
        self._say(f"resumed from {name}: " + ", ".join(f"{key} {value}" for key, value in facts.items()))
        return facts

    def _start_over(self, skipped: list[str]) -> None:
        """Say that the training begins at its first step although there are checkpoints; not if one was complete."""
        assert self.folder
        newest = _from_rank_0([_newest(self.folder)] if self._place.rank == 0 else [])[0]
        if newest or any("could not be loaded" in why for why in skipped):
            first = skipped[0] if skipped else f"{newest} is not there"
            raise CheckpointError(
                f"{self.folder}: no complete checkpoint could be loaded; the newest: {first}. Give another "
                "--checkpoint-dir, or remove this one, to start over"
            )
        if skipped:
            self._say(f"none of {len(skipped)} checkpoints was ever complete; the training starts at its first step")

    def save(self, state: Mapping[str, Any], facts: Mapping[str, Any]) -> None:
        """Copy `state` and go on; a thread writes it with `facts`, JSON with at least epoch, samples and step.

        Waits for the save before, if that still runs. A save that failed is told in the log, and the next one tries
        again. Before the first step there is nothing to save.
        """
        if not self.folder or not facts["step"]:
            return
        self._settle()
        self._number += 1
        suffix = f"-round-{self._round}" if self._round else ""
        path = self.folder / f"{self._number:06d}-step-{facts['step']}{suffix}"
        writer = dcp.FileSystemWriter(path)
        tree = {**_tree(state), "random": {f"rank-{self._place.rank}": _random_state()}}
        self._staged = staged = writer.stage(tree) if _sharded(state) else _copied(tree, self._staged)
        marker = {"facts": dict(facts), "fixed": self._fixed, "world_size": self._place.world_size}
        self._writing = self._thread.submit(self._write, path, writer, staged, marker)

    def finish(self) -> None:
        """Wait until the last save is complete, or has failed and is told."""
        self._settle()

    def _settle(self) -> None:
        if not self._writing:
            return
        writing, self._writing = self._writing, None
        error = writing.exception()
        if not error:
            if self._failing:
                self._say(f"checkpoints can be written to {self.folder} again")
            self._failing = ""
            return
        self._failing = _reason(error)
        self._say(
            f"a checkpoint could not be written to {self.folder}: {self._failing}; the training goes on without it"
        )

    def _write(self, path: Path, writer: dcp.FileSystemWriter, staged: dict[str, Any], marker: dict[str, Any]) -> None:
        """In the thread: all files, then their checksums, then rank 0's marker, then older checkpoints are removed."""
        try:
            metadata = dcp.save(staged, storage_writer=writer, process_group=self._group)
            mine = {file.name: _sum(file) for file in path.glob(f"__{self._place.rank}_*")}
            sums: list[dict[str, str]] = [{}] * self._place.world_size
            c10d.all_gather_object(sums, mine, self._group)
        except BaseException:
            if self._place.rank == 0:  # it would only take room
                shutil.rmtree(path, ignore_errors=True)
            raise
        if self._place.rank:
            return
        # Sizes as the writers knew them: a mount may not show this node yet what another has written.
        sizes: dict[str, int] = {".metadata": (path / ".metadata").stat().st_size}
        for part in metadata.storage_data.values():
            sizes[part.relative_path] = max(sizes.get(part.relative_path, 0), part.offset + part.length)
        known = {".metadata": _sum(path / ".metadata"), **{name: text for part in sums for name, text in part.items()}}
        facts = {**marker, "time": round(time.time(), 3), "files": sizes, "sha256": known}
        (path / MARKER).write_text(json.dumps(facts) + "\n")
        with replacing(path.parent / NEWEST) as newest:
            newest.write_text(json.dumps({"name": path.name}) + "\n")
        self._prune()

    def _prune(self) -> None:
        """Remove all but the newest complete ones, and what crashed processes left before those."""
        assert self.folder
        names = sorted(self._names(), key=_order, reverse=True)
        complete = [name for name in names if verified(self.folder / name)]
        for name in names:
            if complete and _order(name) < _order(complete[0]) and name not in complete[: self._keep]:
                (self.folder / name / MARKER).unlink(missing_ok=True)  # first, so that no part looks whole
                shutil.rmtree(self.folder / name, ignore_errors=True)

    def _names(self) -> list[str]:
        assert self.folder
        return (
            [path.name for path in self.folder.iterdir() if NAME.fullmatch(path.name)] if self.folder.exists() else []
        )

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
        """Load into `state`, each process for itself. Returns what went wrong."""
        tree = _tree(state)
        mine = f"rank-{self._place.rank}"
        if world_size == self._place.world_size:
            tree["random"] = {mine: _random_state()}
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "torch.distributed is disabled")  # said to everyone with no_dist
                dcp.load(tree, storage_reader=dcp.FileSystemReader(path), no_dist=True)
        except (Exception, CheckpointException) as error:  # noqa: BLE001 (a damaged file makes the reader raise anything)
            return f"it could not be loaded: {_reason(error)}"
        _put(state, tree)
        if "random" in tree:
            _set_random_state(tree["random"][mine])
        return None

    def _say(self, text: str) -> None:
        if self._place.rank == 0:
            dist.write_line(text, sys.stdout)


class Damaged(Exception):
    """A checkpoint's folder is not what its marker says, or has none; the text says what a reader should know."""


def verified(path: Path) -> dict[str, Any] | None:
    """The marker of a checkpoint's folder, or None if its files are not there in their sizes; no content is read."""
    try:
        marker = read_marker(path)
        check_sizes(path, marker)
    except Damaged:
        return None
    return marker


def read_marker(path: Path) -> dict[str, Any]:
    """The marker of a checkpoint's folder. Raises Damaged."""
    try:
        text = (path / MARKER).read_text()
    except FileNotFoundError:
        raise Damaged(f"it has no {MARKER}, so it was never finished") from None
    except (OSError, ValueError) as error:
        raise Damaged(f"its {MARKER} cannot be read: {error}") from None
    try:
        marker: dict[str, Any] = json.loads(text)
        if {"files", "facts", "fixed", "world_size"} <= marker.keys():
            return marker
    except (ValueError, AttributeError):
        pass
    raise Damaged(f"its {MARKER} is cut off, or is not one")


def check_sizes(path: Path, marker: Mapping[str, Any]) -> None:
    """Raise Damaged if a file is missing or has another size than when it was written."""
    for name, size in marker["files"].items():
        try:
            found = (path / name).stat().st_size
        except OSError:
            raise Damaged(f"its file {name} is missing") from None
        if found != size:
            raise Damaged(f"its file {name} has {found:,} bytes, {size:,} were written")


def check_sums(path: Path, marker: Mapping[str, Any], rank: int = 0, world_size: int = 1) -> None:
    """Raise Damaged if a file has another content than when it was written. Each rank reads its share of the files."""
    for name, expected in sorted(marker.get("sha256", {}).items())[rank::world_size]:
        try:
            found = _sum(path / name)
        except OSError as error:
            raise Damaged(f"its file {name} cannot be read: {error}") from None
        if found != expected:
            raise Damaged(f"its file {name} was changed after it was written (its checksum differs)")


def _sum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _newest(folder: Path) -> str:
    """The name of the newest checkpoint that was ever complete, or nothing."""
    try:
        return str(json.loads((folder / NEWEST).read_text())["name"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _reason(error: BaseException) -> str:
    """One line that names the cause. DCP wraps the errors of all processes, with their tracebacks, into one."""
    failures = getattr(error, "failures", None) or {}
    for failure in failures.values():
        inner = failure[0] if isinstance(failure, tuple) else failure
        if isinstance(inner, BaseException):
            error = inner
            break
    while not isinstance(error, OSError) and isinstance(error.__cause__ or error.__context__, OSError):
        error = error.__cause__ or error.__context__  # type: ignore[assignment]
    if isinstance(error, OSError) and error.errno in PLAIN:
        return f"{PLAIN[error.errno]} ({error})"
    return f"{type(error).__name__}: {' '.join((str(error).strip().splitlines() or [''])[-1].split())}"


PLAIN = {
    errno.ENOSPC: "there is no room left",
    errno.EDQUOT: "the quota is used up",
    errno.EROFS: "the folder is mounted read-only",
    errno.EACCES: "this process may not write there",
}


def _order(name: str) -> tuple[int, int]:
    """What is newer: the later team's, then the later save."""
    found = NAME.fullmatch(name)
    assert found
    return int(found[2] or 0), int(found[1])


def _from_rank_0(value: list[str]) -> list[str]:
    box = [value]
    c10d.broadcast_object_list(box)
    return box[0]


def _first(error: str | None) -> str:
    """The first process's error, in every process alike; empty if none has any."""
    errors: list[str] = [""] * c10d.get_world_size()
    c10d.all_gather_object(errors, error or "")
    return next(filter(None, errors), "")


def _broadcast(tree: dict[str, Any] | None, source: int) -> dict[str, Any]:
    """Give the tree of one process to all."""
    buffer = io.BytesIO()
    if tree is not None:
        torch.save(tree, buffer)
    size = torch.tensor(len(buffer.getbuffer()))
    c10d.broadcast(size, source)
    content = torch.empty(int(size), dtype=torch.uint8)
    if tree is not None:
        content = torch.frombuffer(buffer.getbuffer(), dtype=torch.uint8)
    c10d.broadcast(content, source)
    loaded: dict[str, Any] = torch.load(io.BytesIO(content.numpy().tobytes()), map_location="cpu", weights_only=True)
    return loaded


def _sharded(state: Mapping[str, Any]) -> bool:
    """Whether no process has all of the model (FSDP2)."""
    return any(isinstance(value, DTensor) for value in _module(state).parameters())


def _copied(tree: Any, before: Any) -> Any:
    """A copy of a tree in the CPU's memory, in the tensors of the copy before where they fit: new memory is slow."""
    if isinstance(tree, dict):
        return {
            key: _copied(value, before.get(key) if isinstance(before, dict) else None) for key, value in tree.items()
        }
    if isinstance(tree, list | tuple):
        pairs = (
            zip(tree, before, strict=True) if isinstance(before, list | tuple) and len(before) == len(tree) else None
        )
        return type(tree)([_copied(*pair) for pair in pairs] if pairs else [_copied(value, None) for value in tree])
    if not isinstance(tree, torch.Tensor):
        return copy.deepcopy(tree)
    fits = isinstance(before, torch.Tensor) and before.shape == tree.shape and before.dtype == tree.dtype
    into = before if fits else torch.empty_like(tree, device="cpu")
    return into.copy_(tree.detach())


def _module(state: Mapping[str, Any]) -> nn.Module:
    return next(part for part in state.values() if isinstance(part, nn.Module))


def _tree(state: Mapping[str, Any]) -> dict[str, Any]:
    """What DCP saves, and fills when it loads. Tensors are those of the training itself, not copies."""
    tree: dict[str, Any] = {}
    for name, part in state.items():
        if isinstance(part, nn.Module):
            tree[name] = dcp_state.get_model_state_dict(part)
        elif isinstance(part, torch.optim.Optimizer):
            tree[name] = dcp_state.get_optimizer_state_dict(_module(state), part)
        else:
            tree[name] = part.state_dict()
    return tree


def _put(state: Mapping[str, Any], tree: dict[str, Any]) -> None:
    for name, part in state.items():
        if isinstance(part, nn.Module):
            dcp_state.set_model_state_dict(part, tree[name])
        elif isinstance(part, torch.optim.Optimizer):
            dcp_state.set_optimizer_state_dict(_module(state), part, tree[name])
        else:
            part.load_state_dict(tree[name])


def _random_state() -> dict[str, torch.Tensor]:
    state = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        state["cuda"] = torch.cuda.get_rng_state()
    return state


def _set_random_state(state: dict[str, torch.Tensor]) -> None:
    torch.set_rng_state(state["cpu"])
    if "cuda" in state:
        torch.cuda.set_rng_state(state["cuda"])

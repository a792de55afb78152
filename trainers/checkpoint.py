"""Checkpoints that outlive any process, node and number of processes.

Why torch.distributed.checkpoint (DCP), and what is added to it:

DCP writes what each process holds, in parallel, and reads it back for any other number of processes, FSDP2's shards
included. A file of safetensors from rank 0 would be simpler, but needs the whole state in one memory, and resharding
by hand. DCP alone isn't enough on a mounted blob container: nothing there is renamed atomically, so a crash may leave
half of it. Here each checkpoint has a folder of its own, and `complete.json`, which names the files and their sizes,
is written last. A folder whose marker is missing, broken, or not true of its files does not exist for a reader.

The state is copied to memory at once, and a thread writes it while the training goes on. That thread has a gloo group
of its own, since two threads must not exchange over one. Nothing is on the disk of a node: the next processes may run
on other machines, and be more or fewer.

DCP's files are pickles. They are safe as long as nobody but the run itself can write into the folder.
"""

from __future__ import annotations

import argparse
import hashlib
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
from files import DataError
from torch import nn
from torch.distributed.checkpoint import state_dict as dcp_state
from torch.distributed.checkpoint.api import CheckpointException  # not an Exception

MARKER = "complete.json"
NAME = re.compile(r"(\d{6})-step-\d+")  # the number of the save, and how many steps were done


class CheckpointError(RuntimeError):
    """Checkpoints cannot be written, or there are some and none can be read."""


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


class Checkpoints:
    """The checkpoints of a run in `folder`, which every process can read and write; None: no method does anything.

    Each process makes one, inside `dist.run`, and all call each method alike. `every` is the number of steps between
    two (0: none within an epoch), `keep` how many complete ones are kept. A checkpoint made with other values of
    `fixed`, such as batch size and epochs, is refused, since training on from it would mean something else.

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
        self._failures = 0
        if folder:
            self._group = c10d.new_group(backend="gloo", timeout=place.patience)
            self._thread = ThreadPoolExecutor(1, "checkpoint")

    def due(self, step: int) -> bool:
        """Whether a checkpoint is to be made when `step` steps are done. After each epoch one is made anyway."""
        return bool(self.folder and self._every and step % self._every == 0)

    def restore(self, state: Mapping[str, Any]) -> dict[str, Any] | None:
        """Load the newest complete checkpoint into `state`. Returns its facts and `world_size`, or None without one.

        One that any process can't read is left for the next older one. Raises DataError where `fixed` differs, and
        CheckpointError if there are complete ones and none can be loaded.
        """
        if not self.folder:
            return None
        names = self._names() if self._place.rank == 0 else []
        names = _from_rank_0(names)
        self._number = max((_number(name) for name in names), default=0)
        broken = ""
        for name in sorted(names, key=_number, reverse=True):
            marker = verified(self.folder / name)
            if not _all(marker is not None):
                continue
            assert marker is not None
            self._check_fixed(name, marker["fixed"])
            error = self._load(self.folder / name, state, marker["world_size"])
            if _all(error is None):
                facts = {**marker["facts"], "world_size": marker["world_size"]}
                self.start = facts["step"]
                self._say(f"resumed from {name}: " + ", ".join(f"{key} {value}" for key, value in facts.items()))
                return facts
            broken = broken or f"{name}: {error or 'another process could not load it'}"
            self._say(f"checkpoint {broken}")
        if broken:
            raise CheckpointError(f"{self.folder}: no complete checkpoint could be loaded; the newest: {broken}")
        return None

    def save(self, state: Mapping[str, Any], facts: Mapping[str, Any]) -> None:
        """Copy `state` and go on; a thread writes it with `facts`, JSON with at least epoch, samples and step.

        Waits for the save before, if that still runs. One save that failed is told in the log; a second one in a
        row raises CheckpointError. Before the first step there is nothing to save.
        """
        if not self.folder or not facts["step"]:
            return
        self._settle(most_failures=1)
        self._number += 1
        path = self.folder / f"{self._number:06d}-step-{facts['step']}"
        writer = dcp.FileSystemWriter(path)
        copy = writer.stage({**_tree(state), "random": {f"rank-{self._place.rank}": _random_state()}})
        marker = {"facts": dict(facts), "fixed": self._fixed, "world_size": self._place.world_size}
        self._writing = self._thread.submit(self._write, path, writer, copy, marker)

    def finish(self) -> None:
        """Wait until the last save is complete. Raises CheckpointError if it failed."""
        self._settle(most_failures=0)

    def _settle(self, most_failures: int) -> None:
        if not self._writing:
            return
        writing, self._writing = self._writing, None
        error = writing.exception()
        self._failures = self._failures + 1 if error else 0
        if not error:
            return
        text = f"a checkpoint could not be written to {self.folder}: {_reason(error)}"
        if self._failures > most_failures:
            raise CheckpointError(text) from error
        self._say(text)

    def _write(self, path: Path, writer: dcp.FileSystemWriter, copy: dict[str, Any], marker: dict[str, Any]) -> None:
        """In the thread: all files, then rank 0's marker, then older checkpoints are removed."""
        metadata = dcp.save(copy, storage_writer=writer, process_group=self._group)
        if self._place.rank:
            return
        # Sizes as the writers knew them: a mount may not show this node yet what another has written.
        sizes: dict[str, int] = {".metadata": (path / ".metadata").stat().st_size}
        for part in metadata.storage_data.values():
            sizes[part.relative_path] = max(sizes.get(part.relative_path, 0), part.offset + part.length)
        (path / MARKER).write_text(json.dumps({**marker, "time": round(time.time(), 3), "files": sizes}) + "\n")
        self._prune()

    def _prune(self) -> None:
        """Remove all but the newest complete ones, and what crashed processes left before those."""
        assert self.folder
        names = sorted(self._names(), key=_number, reverse=True)
        complete = [name for name in names if verified(self.folder / name)]
        for name in names:
            if _number(name) < _number(complete[0]) and name not in complete[: self._keep]:
                (self.folder / name / MARKER).unlink(missing_ok=True)  # first, so that no part looks whole
                shutil.rmtree(self.folder / name, ignore_errors=True)

    def _names(self) -> list[str]:
        assert self.folder
        return (
            [path.name for path in self.folder.iterdir() if NAME.fullmatch(path.name)] if self.folder.exists() else []
        )

    def _check_fixed(self, name: str, fixed: dict[str, object]) -> None:
        for key in sorted({*fixed, *self._fixed}):
            if fixed.get(key) != self._fixed.get(key):
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
            return _reason(error)
        _put(state, tree)
        if "random" in tree:
            _set_random_state(tree["random"][mine])
        return None

    def _say(self, text: str) -> None:
        if self._place.rank == 0:
            dist.write_line(text, sys.stdout)


def verified(path: Path) -> dict[str, Any] | None:
    """The content of the marker in a checkpoint's folder, or None if that is no complete checkpoint."""
    try:
        marker: dict[str, Any] = json.loads((path / MARKER).read_text())
        whole = all((path / name).stat().st_size == size for name, size in marker["files"].items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return marker if whole else None


def _reason(error: BaseException) -> str:
    """One line. DCP puts the tracebacks of all processes into its error; the last line says what it was."""
    return f"{type(error).__name__}: {' '.join((str(error).strip().splitlines() or [''])[-1].split())}"


def _number(name: str) -> int:
    return int(name.partition("-")[0])


def _from_rank_0(value: list[str]) -> list[str]:
    box = [value]
    c10d.broadcast_object_list(box)
    return box[0]


def _all(good: bool) -> bool:
    """Whether it is so in every process."""
    flag = torch.tensor(int(good))
    c10d.all_reduce(flag, op=c10d.ReduceOp.MIN)
    return bool(flag)


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

"""The copy of a state that is written while the training continues.

Copying hundreds of megabytes takes a good part of a step, and between two steps no other work can be done. But the
values that an optimizer's step changes, the parameters and the optimizer's own numbers, stay unchanged until the next
step. So a thread copies these values while forward and backward run, and the next step waits for the thread
(`register_step_pre_hook`). All other values are copied at once: a module's buffers, which forward changes, and values
that are not tensors. FSDP2's shards are copied at once, too.

The copy reuses the tensors of the previous copy where they fit, because new memory is slow.
"""

from __future__ import annotations

import copy
import threading
import weakref
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from .state import module_of, sharded

# For each optimizer: whether the last copy of the values that it changes is done. The entry lives as long as the
# optimizer, even if the optimizer serves several teams with separate `Checkpoints`.
_COPIED: weakref.WeakKeyDictionary[Optimizer, threading.Event] = weakref.WeakKeyDictionary()


def _wait(optimizer: Optimizer, *_: Any) -> None:
    _COPIED[optimizer].wait()


def wait_for_copies(state: Mapping[str, Any]) -> None:
    """Wait until no thread copies this state. Call this function before anything other than a step changes the
    state."""
    for part in state.values():
        if isinstance(part, Optimizer) and part in _COPIED:
            _wait(part)


class Staging:
    """The copy for the save in progress."""

    def __init__(self) -> None:
        self._copy: Any = {}
        self._later: list[tuple[Tensor, Tensor]] = []
        self._done = threading.Event()

    def begin(self, tree: Mapping[str, Any], state: Mapping[str, Any]) -> None:
        """Copy the values that may change at any time, and note which tensors `finish` has to copy before the
        optimizers' next step."""
        optimizers = [part for part in state.values() if isinstance(part, Optimizer)]
        at_once = {buffer.data_ptr() for buffer in module_of(state).buffers()}
        may_wait = {name for name, part in state.items() if part is module_of(state) or isinstance(part, Optimizer)}
        if not optimizers or sharded(state):
            may_wait = set()
        before, self._later, self._done = self._copy, [], threading.Event()
        self._copy = {
            name: _copied(part, _part(before, name), self._later if name in may_wait else None, at_once)
            for name, part in tree.items()
        }
        for optimizer in optimizers:
            if optimizer not in _COPIED:
                optimizer.register_step_pre_hook(_wait)
            _COPIED[optimizer] = self._done

    def finish(self) -> dict[str, Any]:
        """Return the complete copy. The thread that writes the checkpoint calls this method."""
        try:
            with torch.no_grad():
                for into, source in self._later:
                    into.copy_(source)
        finally:
            self._later = []
            self._done.set()
        whole: dict[str, Any] = self._copy
        return whole


def _part(before: Any, key: Any) -> Any:
    if isinstance(before, dict):
        return before.get(key)
    return before[key] if isinstance(before, list | tuple) and key < len(before) else None


def _copied(tree: Any, before: Any, later: list[tuple[Tensor, Tensor]] | None, at_once: set[int]) -> Any:
    """Return a copy of a tree in the CPU's memory. Tensors that may be copied later stay empty, and are noted in
    `later`."""
    if isinstance(tree, dict):
        return {key: _copied(value, _part(before, key), later, at_once) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        return type(tree)([_copied(value, _part(before, i), later, at_once) for i, value in enumerate(tree)])
    if not isinstance(tree, Tensor):
        return copy.deepcopy(tree)
    into = before if _fits(before, tree) else torch.empty_like(tree, device="cpu", requires_grad=False)
    if later is None or tree.data_ptr() in at_once:
        return into.copy_(tree.detach())
    later.append((into, tree.detach()))
    return into


def _fits(before: Any, tensor: Tensor) -> bool:
    return isinstance(before, Tensor) and before.shape == tensor.shape and before.dtype == tensor.dtype

"""A training's state as a tree of tensors, and back. DCP saves this tree, and one process can send the tree to
another.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import torch
import torch.distributed as c10d
from torch import nn
from torch.distributed.checkpoint import state_dict as dcp_state
from torch.distributed.tensor import DTensor


def module_of(state: Mapping[str, Any]) -> nn.Module:
    """Return the only module in a training's state."""
    return next(part for part in state.values() if isinstance(part, nn.Module))


def tree_of(state: Mapping[str, Any], live: bool = False) -> dict[str, Any]:
    """Return the tree for DCP's saving and loading. The tensors are the training's own tensors, not copies.

    `live`: include the state that another process needs to continue from this process's memory, but that no checkpoint
    needs.
    """
    tree: dict[str, Any] = {}
    for name, part in state.items():
        if isinstance(part, nn.Module):
            tree[name] = dcp_state.get_model_state_dict(part)
        elif isinstance(part, torch.optim.Optimizer):
            tree[name] = dcp_state.get_optimizer_state_dict(module_of(state), part)
        else:
            tree[name] = part.live_state_dict() if live and hasattr(part, "live_state_dict") else part.state_dict()
    return tree


def put(state: Mapping[str, Any], tree: dict[str, Any]) -> None:
    """Load a tree into the parts of a training."""
    for name, part in state.items():
        if isinstance(part, nn.Module):
            dcp_state.set_model_state_dict(part, tree[name])
        elif isinstance(part, torch.optim.Optimizer):
            dcp_state.set_optimizer_state_dict(module_of(state), part, tree[name])
        else:
            part.load_state_dict(tree[name])


def random_state() -> dict[str, torch.Tensor]:
    state = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        state["cuda"] = torch.cuda.get_rng_state()
    return state


def set_random_state(state: dict[str, torch.Tensor]) -> None:
    torch.set_rng_state(state["cpu"])
    if "cuda" in state:
        torch.cuda.set_rng_state(state["cuda"])


def sharded(state: Mapping[str, Any]) -> bool:
    """Return whether no process holds the whole model (FSDP2)."""
    return any(isinstance(value, DTensor) for value in module_of(state).parameters())


def from_rank_0(value: list[str]) -> list[str]:
    box = [value]
    c10d.broadcast_object_list(box)
    return box[0]


def first(error: str | None) -> str:
    """Return the error of the first failing process, equal in every process; '' without an error."""
    errors: list[str] = [""] * c10d.get_world_size()
    c10d.all_gather_object(errors, error or "")
    return next(filter(None, errors), "")


def broadcast(tree: dict[str, Any] | None, source: int) -> dict[str, Any]:
    """Send the tree of one process to the other processes."""
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

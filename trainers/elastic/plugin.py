"""What stock torchrun finds. PyTorch loads this while it imports itself, so nothing of PyTorch is imported here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def plugin() -> Callable[[Any], Any]:
    """The entry point `torchrun.handlers` names this: it gives the creator of rendezvous handlers."""
    return _create


def _create(params: Any) -> Any:
    from .handler import create

    return create(params)

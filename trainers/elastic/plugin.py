"""The plugin for stock torchrun. PyTorch loads this module during its own import, so the module imports nothing of
PyTorch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def plugin() -> Callable[[Any], Any]:
    """Return the creator of rendezvous handlers. The entry point `torchrun.handlers` names this function."""
    return _create


def _create(params: Any) -> Any:
    from .handler import create

    return create(params)

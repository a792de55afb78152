"""The parameters and answers of an operation: its function's signature, by the rules of shared/kernel/operation.py."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, get_args, get_origin, get_type_hints

from shared.kernel.operation import Operation
from shared.kernel.reply import Reply

_PATH = re.compile(r"\{\*?(\w+)\}")


@dataclass(frozen=True)
class Signature:
    """`takes` maps each parameter to its type, `path` lists the names in the path, `answers` maps statuses to types."""

    function: Callable[..., Any]
    takes: dict[str, Any]
    path: tuple[str, ...]
    body_required: bool
    answers: dict[int, Any]

    @property
    def query(self) -> Any:
        return self.takes.get("query")

    @property
    def body(self) -> Any:
        return self.takes.get("body")


@cache
def signature(operation: Operation) -> Signature:
    """Import the operation's function and return its signature. Raises TypeError for a function without answers."""
    function = getattr(import_module(operation.module), operation.name)
    hints = get_type_hints(function, include_extras=True)
    answered = hints.pop("return", None)
    names = tuple(_PATH.findall(operation.path))
    body = inspect.signature(function).parameters.get("body")
    required = body is not None and body.default is inspect.Parameter.empty
    return Signature(function, hints, names, required, _answers(operation, answered))


def _answers(operation: Operation, answered: Any) -> dict[int, Any]:
    if not hasattr(answered, "__metadata__"):
        raise TypeError(
            f"{operation.module}:{operation.name} must return Annotated[Json, ...] or Annotated[Reply, ...]."
        )
    value, described = get_args(answered)
    return described if (get_origin(value) or value) is Reply else {operation.status: described}

"""The definition of a tool: a name, a description for a reader that does not know Trainyard, its arguments, and its
function.

A tool calls operations of the API. The operations decide who may use the tool and check each value, and their types
define the tool's arguments. So nothing is declared twice, and a tool can do nothing beyond the API.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from msgspec import NODEFAULT, UNSET, UnsetType, defstruct, to_builtins
from msgspec.structs import fields

from shared.agents.outside import cleaned, is_empty
from shared.agents.plans import SubmissionPlans
from shared.api.registry import OPERATIONS
from shared.kernel import parsing
from shared.kernel.clock import Clock
from shared.kernel.errors import BadInput, Forbidden, NotFound
from shared.kernel.operation import Operation
from shared.kernel.reply import CallOperation
from shared.runs.names import RUN_NAME

MOST_TEXT = 16_000  # characters of an answer, some 4,000 tokens
_BY_NAME: dict[str, Operation] = {operation.name: operation for operation in OPERATIONS}


@dataclass(frozen=True)
class Desk:
    """The environment of a tool. `call` calls an API operation for the caller; `caller` identifies the owner of
    plans.
    """

    call: CallOperation
    plans: SubmissionPlans
    clock: Clock
    new_token: Callable[[], str]
    caller: str


@dataclass(frozen=True)
class ToolAnswer:
    """The answer of a tool.

    `facts` are Trainyard's own words and numbers, and `outside` is text from outside. `cut` lists what is left out and
    how to get it. `advice` is what to do next.
    """

    facts: dict[str, Any]
    outside: dict[str, Any] = field(default_factory=dict)
    cut: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()

    def text(self) -> str:
        """Return the answer as JSON of at most MOST_TEXT characters."""
        for longest in (300, 120, 40):
            parts = {"from_outside": cleaned(self.outside, longest), "cut": list(self.cut), "advice": list(self.advice)}
            shown = {**self.facts, **{name: part for name, part in parts.items() if not is_empty(part)}}
            if len(text := json.dumps(shown, ensure_ascii=False, separators=(",", ":"))) <= MOST_TEXT:
                return text
        cut = [*self.cut, f"The answer had {len(text)} characters, at most {MOST_TEXT} are sent. Ask for fewer things."]
        return json.dumps({"cut": cut}, ensure_ascii=False, separators=(",", ":"))


@dataclass(frozen=True)
class Tool:
    """A tool. `arguments` is a msgspec.Struct; `hints` are annotations of the protocol."""

    name: str
    title: str
    description: str
    arguments: type[Any]
    run: Callable[[Desk, Any], ToolAnswer]
    hints: dict[str, bool]

    def declared(self) -> dict[str, Any]:
        """Return the tool as tools/list shows it. The schema's root is an object, as the protocol demands."""
        (ref,), components = parsing.schemas([self.arguments], "#/$defs/{name}")
        root = components.pop(ref["$ref"].rpartition("/")[2])
        schema = {**root, "type": "object", **({"$defs": components} if components else {})}
        shown = {"name": self.name, "title": self.title, "description": self.description, "inputSchema": schema}
        return {**shown, "annotations": {"title": self.title, **self.hints}}

    def answer(self, desk: Desk, arguments: Any) -> ToolAnswer:
        """Check the arguments and run the tool. Raises BadInput, which names the argument, and the errors of the
        operations.
        """
        if not isinstance(arguments, dict):
            raise BadInput(f"The arguments of {self.name} are {type(arguments).__name__}, not an object.")
        body = json.dumps(arguments).encode()
        return self.run(desk, parsing.read_body(body, self.arguments))


def run_or_drop(desk: Desk, name: str) -> dict[str, Any]:
    """Return the meaning of a name: {"run", "drop"}, one of them ''. A run's complete name needs no search.

    Raises NotFound, also for a caller that may not search among everybody's runs.
    """
    if RUN_NAME.fullmatch(name):
        try:
            return {"run": desk.call("get_run", path={"run": name})["run"], "drop": ""}
        except NotFound as exc:
            missing = exc
    else:
        missing = NotFound(f"There is no run {name[:80]!r}. Give the complete name of a run.")
    try:
        found: dict[str, Any] = desk.call("find", query={"name": name})
    except Forbidden:
        raise missing from None
    return found


def operation(name: str) -> Operation:
    """Return a declared operation. Raises KeyError."""
    return _BY_NAME[name]


def arguments_of(model: Any, names: Iterable[str], **changes: Any) -> list[Field]:
    """Return fields of an operation's query or body as a tool's arguments, all optional. Raises KeyError.

    `changes` are defaults that differ from the operation's. Without a default, an absent field is UNSET.
    """
    declared = {each.encode_name: each for each in fields(model)}
    chosen: list[Field] = []
    for name in names:
        default = changes.get(name, declared[name].default)
        if default is NODEFAULT:
            made = declared[name].default_factory
            default = UNSET if made is NODEFAULT else made()
        kind = declared[name].type
        chosen.append((name, kind | UnsetType if default is UNSET else kind, default))
    return chosen


def given(arguments: Any, names: Iterable[str]) -> dict[str, Any]:
    """Return the arguments of these names that the caller gave."""
    plain = to_builtins(arguments)
    return {name: plain[name] for name in names if name in plain and not is_empty(plain[name])}


Field = tuple[str, Any] | tuple[str, Any, Any]  # a name, a type, and a default unless the argument is required


def arguments(name: str, about: str, *parts: Iterable[Field]) -> type[Any]:
    """Return a class of arguments that refuses unknown names."""
    chosen = [each for part in parts for each in part]
    return defstruct(name, chosen, forbid_unknown_fields=True, kw_only=True, namespace={"__doc__": about})

"""Evaluates Bicep's expressions: the value of a tree's node in a scope."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tree_sitter import Node

from emulators.arm.collection_functions import equal
from emulators.arm.functions import PURE, Json
from emulators.arm.string_functions import shown
from emulators.arm.syntax import SPREAD, BicepError, children, error, part, text

ESCAPES = {r"\n": "\n", r"\t": "\t", r"\r": "\r", r"\\": "\\", r"\'": "'"}


@dataclass(frozen=True)
class Scope:
    """The names for an expression: variables of loops and lambdas first, then the file's symbols."""

    path: Path
    symbol: Callable[[str], Any]
    function: Callable[[str], Callable[..., Any] | None]
    local: Mapping[str, Any] = field(default_factory=dict)

    def having(self, **values: Any) -> Scope:
        return replace(self, local={**self.local, **values})


def evaluate(node: Node, scope: Scope) -> Any:
    """Return the value of an expression. Raises BicepError with file and line."""
    handler = HANDLERS.get(node.type)
    if handler is None:
        raise error(scope.path, node, f"{node.type} is not taken here: {text(node)[:60]!r}")
    return handler(node, scope)


def loop(node: Node, scope: Scope) -> Iterator[Scope]:
    """Yield the scope of each iteration of a for expression, with the item and, if the loop names one, the index."""
    names, over = children(node)[0], children(node)[1]
    item, *index = [text(name) for name in (children(names) if names.type == "for_loop_parameters" else [names])]
    for number, value in enumerate(evaluate(over, scope)):
        yield scope.having(**{item: value}, **dict.fromkeys(index, number))


def _string(node: Node, scope: Scope) -> str:
    if text(node).startswith("'''"):
        return text(node)[3:-3].removeprefix("\n")
    if r"\$" in text(node):
        raise error(scope.path, node, r"the grammar loses \$; build the string from parts")
    parts = []
    for child in children(node):
        if child.type == "interpolation":
            parts.append(shown(evaluate(children(child)[0], scope)))
        else:
            parts.append(ESCAPES.get(text(child), text(child)))
    return "".join(parts)


def _object(node: Node, scope: Scope) -> Json:
    found: Json = {}
    for entry in children(node, "object_property"):
        key, value = children(entry)
        name = text(key) if key.type == "identifier" else _string(key, scope)
        found |= evaluate(value, scope) if name == SPREAD else {name: evaluate(value, scope)}
    return found


def _array(node: Node, scope: Scope) -> list[Any]:
    if (parts := children(node)) and parts[0].type == "for_statement":
        return _for(parts[0], scope)
    found: list[Any] = []
    spread = False
    for child in parts:
        if child.type == "string" and text(child) == f"'{SPREAD}'":
            spread = True
            continue
        found += evaluate(child, scope) if spread else [evaluate(child, scope)]
        spread = False
    return found


def _for(node: Node, scope: Scope) -> list[Any]:
    return [evaluate(part(node, "body"), turn) for turn in loop(node, scope)]


def _name(node: Node, scope: Scope) -> Any:
    name = text(node)
    return scope.local[name] if name in scope.local else scope.symbol(name)


@dataclass(frozen=True)
class Step:
    """An access to a member: `.name`, or `.?name`, which is null for a missing member."""

    name: str
    optional: bool


def _member(node: Node, scope: Scope) -> Any:
    path: list[Step] = []
    inner = node
    while inner.type == "member_expression":
        path.insert(0, Step(text(part(inner, "property")), any(child.type == ".?" for child in inner.children)))
        inner = part(inner, "object")
    if inner.type == "lambda_expression":  # the grammar reads `w => w.id` as `(w => w).id`
        each = _lambda(inner, scope)
        return lambda *values: _reach(each(*values), path, node, scope)
    return _reach(evaluate(inner, scope), path, node, scope)


def _reach(value: Any, path: list[Step], node: Node, scope: Scope) -> Any:
    if hasattr(value, "get") and not isinstance(value, dict):  # a resource
        return value.get(tuple(step.name for step in path))
    if hasattr(value, "outputs"):  # a module
        value = {"outputs": value.outputs}
    for step in path:
        if not isinstance(value, dict) or step.name not in value:
            if step.optional:
                return None
            raise error(scope.path, node, f"there is no {step.name!r} in {text(node)!r}")
        value = value[step.name]
    return value


def _parenthesized(node: Node, scope: Scope) -> Any:
    if not (inner := children(node)):  # so the grammar reads f() as an item of an array: a name, then ()
        raise error(scope.path, node, "the grammar can't read a call without arguments here; give it a variable")
    return evaluate(inner[0], scope)


def _subscript(node: Node, scope: Scope) -> Any:
    return evaluate(part(node, "object"), scope)[evaluate(part(node, "index"), scope)]


def _call(node: Node, scope: Scope) -> Any:
    if part(node, "function").type == "member_expression":
        return _method(part(node, "function"), scope)
    name = text(part(node, "function"))
    function = PURE.get(name) or scope.function(name)
    if function is None:
        raise error(scope.path, node, f"the function {name} is not taken here")
    arguments = [evaluate(argument, scope) for argument in children(part(node, "arguments"))]
    try:
        return function(*arguments)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as exc:
        if isinstance(exc, BicepError):
            raise
        raise error(scope.path, node, f"the function {name} can't take these values: {exc}") from exc


def _method(node: Node, scope: Scope) -> Any:
    """Evaluate a list function of a resource, for example `settings.list()`."""
    on, name = evaluate(part(node, "object"), scope), text(part(node, "property"))
    if not hasattr(on, "call"):
        raise error(scope.path, node, f"{text(node)}: only a resource has functions")
    return on.call(name)


def _lambda(node: Node, scope: Scope) -> Callable[..., Any]:
    """Return a function for the lambda, which ignores surplus arguments: the index may be omitted."""
    head, body = children(node)[0], children(node)[-1]
    names = [text(name) for name in ([head] if head.type == "identifier" else children(head))]
    return lambda *values: evaluate(body, scope.having(**dict(zip(names, values, strict=False))))


def _binary(node: Node, scope: Scope) -> Any:
    operator, left = text(part(node, "operator")), evaluate(part(node, "left"), scope)
    if callable(left):
        raise error(scope.path, node, "the grammar can't read an operator in a lambda; put its body into parentheses")
    if operator in ("&&", "||"):
        return bool(left and _right(node, scope)) if operator == "&&" else bool(left or _right(node, scope))
    if operator == "??":
        return _right(node, scope) if left is None else left
    if operator not in OPERATORS:
        raise error(scope.path, node, f"the operator {operator} is not taken here")
    return OPERATORS[operator](left, _right(node, scope))


def _ordered(value: Any) -> Any:
    return value.lower() if isinstance(value, str) else value  # ARM compares strings case-insensitively


def _divided(left: int, right: int) -> int:
    """Divide, rounding towards zero. The remainder operator matches this rounding."""
    return abs(left) // abs(right) * (1 if (left < 0) is (right < 0) else -1)


OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "==": equal,
    "!=": lambda left, right: not equal(left, right),
    "=~": lambda left, right: left.lower() == right.lower(),
    "!~": lambda left, right: left.lower() != right.lower(),
    ">": lambda left, right: _ordered(left) > _ordered(right),
    "<": lambda left, right: _ordered(left) < _ordered(right),
    ">=": lambda left, right: _ordered(left) >= _ordered(right),
    "<=": lambda left, right: _ordered(left) <= _ordered(right),
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "/": _divided,
    "%": lambda left, right: left - _divided(left, right) * right,
}


def _right(node: Node, scope: Scope) -> Any:
    return evaluate(part(node, "right"), scope)


def _ternary(node: Node, scope: Scope) -> Any:
    chosen = "consequence" if evaluate(part(node, "condition"), scope) else "alternative"
    return evaluate(part(node, chosen), scope)


def _unary(node: Node, scope: Scope) -> Any:
    value = evaluate(part(node, "argument"), scope)
    return -value if text(part(node, "operator")) == "-" else not value


HANDLERS: dict[str, Callable[[Node, Scope], Any]] = {
    "array": _array,
    "binary_expression": _binary,
    "boolean": lambda node, _: text(node) == "true",
    "call_expression": _call,
    "for_statement": _for,
    "identifier": _name,
    "lambda_expression": _lambda,
    "member_expression": _member,
    "null": lambda *_: None,
    "number": lambda node, _: int(text(node)),
    "object": _object,
    "parenthesized_expression": _parenthesized,
    "string": _string,
    "subscript_expression": _subscript,
    "ternary_expression": _ternary,
    "unary_expression": _unary,
}

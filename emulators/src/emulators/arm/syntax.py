"""Reads a Bicep file as declarations with tree-sitter's grammar. Expressions stay nodes of the tree until they are
evaluated.

Supported: parameters with defaults and @allowed, variables, resources (also existing resources, loops, conditions),
modules in local files, outputs. Not supported: nested resources, user-defined types and functions, imports,
.bicepparam.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import tree_sitter_bicep
from tree_sitter import Language, Node, Parser

NOISE = ("comment", "diagnostic_comment")
IGNORED = (*NOISE, "decorators", "metadata_declaration")
BOUNDS = ("allowed", "minLength", "maxLength", "minValue", "maxValue")
SPREAD = "..."  # not in the grammar, so it becomes an item, or a property, of this name
TOKEN = re.compile(r"'''.*?'''|//[^\n]*|/\*.*?\*/|'(?:\\.|[^'\\\n])*'|\.\.\.|[\[\]{}]", re.DOTALL)


class BicepError(ValueError):
    """A file that can't be read or evaluated. The message begins with file and line."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of a template. `bounds` are the arguments of the decorators, for example allowed and minLength."""

    default: Node | None
    bounds: dict[str, Node]


@dataclass(frozen=True)
class DeclaredResource:
    """`repeat` is the for-statement around the body, and `condition` the expression of an if."""

    symbol: str
    kind: str  # Microsoft.Storage/storageAccounts
    api_version: str
    body: Node
    existing: bool = False
    repeat: Node | None = None
    condition: Node | None = None


@dataclass(frozen=True)
class Module:
    symbol: str
    path: Path
    body: Node
    repeat: Node | None = None
    condition: Node | None = None


@dataclass
class File:
    path: Path
    target: str = "resourceGroup"
    parameters: dict[str, Parameter] = field(default_factory=dict)
    variables: dict[str, Node] = field(default_factory=dict)
    resources: dict[str, DeclaredResource] = field(default_factory=dict)
    modules: dict[str, Module] = field(default_factory=dict)
    outputs: dict[str, Node] = field(default_factory=dict)


@cache
def _parser() -> Parser:
    return Parser(Language(tree_sitter_bicep.language()))


def read(path: Path) -> File:
    """Read a file. Raises BicepError for a syntax error or an unsupported part of the language."""
    root = _parser().parse(_without_spread(path.read_text("utf-8")).encode()).root_node
    if root.has_error:
        raise error(path, _fault(root), "this does not parse as Bicep")
    file, decorators = File(path), None
    for node in root.named_children:
        if node.type == "decorators":
            decorators = node
            continue
        _declare(file, node, decorators)
        decorators = None if node.type not in NOISE else decorators
    return file


def _without_spread(source: str) -> str:
    open_brackets = [""]

    def written(match: re.Match[str]) -> str:
        token = match[0]
        if token in ("[", "{"):
            open_brackets.append(token)
        elif token in ("]", "}") and len(open_brackets) > 1:
            open_brackets.pop()
        elif token == SPREAD:
            return f"'{SPREAD}', " if open_brackets[-1] == "[" else f"'{SPREAD}': "
        return token

    return TOKEN.sub(written, source)


def error(path: Path, node: Node, message: str) -> BicepError:
    return BicepError(f"{path.name}:{node.start_point[0] + 1}: {message}")


def text(node: Node) -> str:
    return (node.text or b"").decode()


def children(node: Node, *kinds: str) -> list[Node]:
    """Return the named children of these kinds, or without kinds every named child except comments."""
    return [child for child in node.named_children if (child.type in kinds if kinds else child.type not in IGNORED)]


def part(node: Node, name: str) -> Node:
    found = node.child_by_field_name(name)
    assert found is not None, f"the grammar has no {name} in {node.type}"
    return found


def _fault(node: Node) -> Node:
    for child in node.children:
        if child.is_error or child.is_missing:
            return child
        if child.has_error:
            return _fault(child)
    return node


def _declare(file: File, node: Node, decorators: Node | None) -> None:
    if node.type in IGNORED:
        return
    if node.type == "target_scope_assignment":
        file.target = literal(children(node, "string")[0])
        return
    symbol = text(found[0]) if (found := children(node, "identifier")) else ""
    if node.type == "parameter_declaration":
        file.parameters[symbol] = _parameter(node, decorators)
    elif node.type in _DECLARE:
        _DECLARE[node.type](file, symbol, node)
    else:
        raise error(file.path, node, f"{node.type} is not taken here; write it with params, vars, resources, modules")


def _parameter(node: Node, decorators: Node | None) -> Parameter:
    default = [child for child in children(node)[1:] if child.type != "type"]
    calls = [children(one, "call_expression")[0] for one in (children(decorators, "decorator") if decorators else [])]
    named = {text(part(call, "function")): children(part(call, "arguments")) for call in calls}
    bounds = {name: named[name][0] for name in BOUNDS if name in named}
    return Parameter(default[0] if default else None, bounds)


def _variable(file: File, symbol: str, node: Node) -> None:
    file.variables[symbol] = children(node)[1]


def _output(file: File, symbol: str, node: Node) -> None:
    file.outputs[symbol] = children(node)[-1]


def _resource(file: File, symbol: str, node: Node) -> None:
    kind, _, version = literal(children(node, "string")[0]).partition("@")
    body, repeat, condition = _body(node)
    existing = any(child.type == "existing" for child in node.children)
    file.resources[symbol] = DeclaredResource(symbol, kind, version, body, existing, repeat, condition)


def _module(file: File, symbol: str, node: Node) -> None:
    path = (file.path.parent / literal(children(node, "string")[0])).resolve()
    if not path.is_file():
        raise error(file.path, node, f"there is no module file {path.name}")
    body, repeat, condition = _body(node)
    file.modules[symbol] = Module(symbol, path, body, repeat, condition)


def _body(node: Node) -> tuple[Node, Node | None, Node | None]:
    repeat = condition = None
    inner = children(node)[-1]
    if inner.type == "for_statement":
        repeat, inner = inner, part(inner, "body")
    if inner.type == "if_statement":
        condition, inner = children(inner)[0], children(inner)[-1]
    return inner, repeat, condition


def literal(node: Node) -> str:
    return "".join(text(child) for child in children(node, "string_content"))


_DECLARE = {
    "variable_declaration": _variable,
    "resource_declaration": _resource,
    "module_declaration": _module,
    "output_declaration": _output,
}

"""The interfaces that use cases take: one per noun and none per module; read with ast."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

SHARED = Path(__file__).resolve().parents[2] / "shared"
OF_ALL_NOUNS = {
    "api/deployment_settings.py": "the settings of the deployment, which belong to no noun",
    "api/queries.py": "a comparison names runs by model, drop, sweep or cluster",
    "api/run_views.py": "calls the comparison",
    "api/today.py": "what the day needs of all nouns, in one answer",
    "reactions.py": "the table of what follows from the facts of all nouns",
}
FEW = 2  # nouns
PARAMETERS = 5
MOST = 13  # interfaces; a feature uses an earlier noun's interface if that has its ports


@cache
def protocols() -> list[tuple[Path, ast.ClassDef]]:
    texts = {path: path.read_text("utf-8") for path in sorted(SHARED.rglob("*.py"))}
    return [found for path, text in texts.items() if "Protocol" in text for found in _protocols(path, text)]


def _protocols(path: Path, text: str) -> Iterator[tuple[Path, ast.ClassDef]]:
    for node in ast.walk(ast.parse(text, str(path))):
        bases = [ast.unparse(base) for base in node.bases] if isinstance(node, ast.ClassDef) else []
        if isinstance(node, ast.ClassDef) and any(base.startswith(("Protocol", "typing.Protocol")) for base in bases):
            yield path.relative_to(SHARED), node


def test_ports_are_by_noun() -> None:
    """A folder has one interface for its use cases, in ports.py; a module has no interface of its own."""
    interfaces = [(path, node.name) for path, node in protocols() if node.name.endswith("Ports")]
    assert [name for _, name in interfaces if name == "Ports"] == []
    assert [node.name for _, node in protocols() if node.name.startswith("Has")] == []
    assert [f"{path}: {name}" for path, name in interfaces if path.name != "ports.py"] == []
    assert [path for path, count in Counter(path for path, _ in interfaces).items() if count > 1] == []
    assert len(interfaces) <= MOST


def test_each_port_is_declared_once() -> None:
    """A later interface inherits the ports of an earlier one."""
    declared = Counter(
        function.name
        for _, node in protocols()
        if node.name.endswith("Ports")
        for function in node.body
        if isinstance(function, ast.FunctionDef)
    )
    assert [name for name, count in declared.items() if count > 1] == []


def test_all_ports_are_taken_only_where_many_nouns_are() -> None:
    """Use cases, message handlers and API functions take the interface of the few nouns that they use."""
    users = {
        path.relative_to(folder).as_posix()
        for folder in (SHARED, SHARED.parent / "functions")
        for path in folder.rglob("*.py")
        if "AllPorts" in path.read_text("utf-8") and path != SHARED / "ports.py"
    }
    assert users == OF_ALL_NOUNS.keys()


def ports_of_interfaces() -> tuple[set[str], set[str]]:
    """The names of the interfaces, and of their ports; `happened` is a call and not a port."""
    interfaces = [node for _, node in protocols() if node.name.endswith("Ports")]
    functions = [each for node in interfaces for each in node.body if isinstance(each, ast.FunctionDef)]
    return {node.name for node in interfaces}, {each.name for each in functions if each.decorator_list}


def values(tree: ast.Module) -> Iterator[str]:
    """The names that the module uses as values, or in strings like "module:function", rather than to call them.

    A function with such a name is a handler, a reaction or an API operation, and takes the interface of its table.
    """
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and id(node) not in called:
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and id(node) not in called:
            yield node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value.rpartition(":")[2]


def used_of(function: ast.FunctionDef, parameter: str) -> set[str] | None:
    """The attributes of the parameter that the function reads; None if it passes the parameter on."""
    names = [node for node in ast.walk(function) if isinstance(node, ast.Name) and node.id == parameter]
    attributes = [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == parameter
    ]
    return {node.attr for node in attributes} if len(names) == len(attributes) else None


def test_a_function_of_few_nouns_takes_the_nouns() -> None:
    """A function that uses one or two ports and passes its ports to no other function takes them: `runs: Runs,
    clock: Clock`.

    Functions of a table, and functions that would get more than five parameters, keep an interface.
    """
    interfaces, ports = ports_of_interfaces()
    trees = {
        path: ast.parse(path.read_text("utf-8"))
        for folder in (SHARED, SHARED.parent / "functions")
        for path in sorted(folder.rglob("*.py"))
    }
    fixed = {name for tree in trees.values() for name in values(tree)}
    found = []
    for path, tree in trees.items():
        for function in (node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name not in fixed):
            for argument in function.args.args:
                used = used_of(function, argument.arg)
                if argument.annotation is not None and ast.unparse(argument.annotation) in interfaces and used:
                    many = len(function.args.args) + len(function.args.kwonlyargs) + len(used) - 1 > PARAMETERS
                    if len(used) <= FEW and used <= ports and not many:
                        found.append(f"{path.relative_to(SHARED.parent)}:{function.name} uses only {sorted(used)}")
    assert found == [], "\n".join(found)

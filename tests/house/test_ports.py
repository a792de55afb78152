"""What use cases may take from outside: one interface a noun, and not one a module; read with ast."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

SHARED = Path(__file__).resolve().parents[2] / "shared"
OF_ALL_NOUNS = {
    "api/queries.py": "a comparison names runs by model, drop, sweep or cluster",
    "api/run_views.py": "calls the comparison",
    "reactions.py": "the table of what follows from the facts of all nouns",
}
MOST = 13  # interfaces; a feature needs none of its own where a noun before it has what it takes


def protocols() -> Iterator[tuple[Path, ast.ClassDef]]:
    for path in sorted(SHARED.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"), str(path))):
            bases = [ast.unparse(base) for base in node.bases] if isinstance(node, ast.ClassDef) else []
            if isinstance(node, ast.ClassDef) and any(
                base.startswith(("Protocol", "typing.Protocol")) for base in bases
            ):
                yield path.relative_to(SHARED), node


def test_ports_are_by_noun() -> None:
    """A folder has one interface of what its use cases may touch, in ports.py; a module has none of its own."""
    interfaces = [(path, node.name) for path, node in protocols() if node.name.endswith("Ports")]
    assert [name for _, name in interfaces if name == "Ports"] == []
    assert [node.name for _, node in protocols() if node.name.startswith("Has")] == []
    assert [f"{path}: {name}" for path, name in interfaces if path.name != "ports.py"] == []
    assert [path for path, count in Counter(path for path, _ in interfaces).items() if count > 1] == []
    assert len(interfaces) <= MOST


def test_each_port_is_declared_once() -> None:
    """What a later interface has of an earlier one it inherits."""
    declared = Counter(
        function.name
        for _, node in protocols()
        if node.name.endswith("Ports")
        for function in node.body
        if isinstance(function, ast.FunctionDef)
    )
    assert [name for name, count in declared.items() if count > 1] == []


def test_all_ports_are_taken_only_where_many_nouns_are() -> None:
    """Use cases, handlers of messages and functions of the API take the interface of the few nouns they work with."""
    users = {
        path.relative_to(folder).as_posix()
        for folder in (SHARED, SHARED.parent / "functions")
        for path in folder.rglob("*.py")
        if "AllPorts" in path.read_text("utf-8") and path != SHARED / "ports.py"
    }
    assert users == OF_ALL_NOUNS.keys()

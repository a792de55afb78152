"""The rules of imports, decisions without I/O, and no circular imports; read with ast."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = {"functions", "shared", "cli", "emulators", "local", "trainers", "benchmarks", "tests"}
OURS = PACKAGES | {"function_app", "trainyard"}

# folder: (our packages that it may import besides itself, foreign packages that it must not import)
TABLE: dict[str, tuple[set[str], set[str]]] = {
    "function_app.py": ({"functions"}, {"torch", "torchvision"}),
    "functions": ({"shared"}, {"torch", "torchvision", "azure.storage", "azure.data", "azure.ai", "azure.eventgrid"}),
    "shared": ({"trainers.data_checks"}, {"torch", "torchvision", "azure.functions"}),
    "cli": ({"trainers.data_checks"}, {"torch", "torchvision", "azure.ai", "azure.data", "azure.functions"}),
    "local": ({"emulators", "cli"}, {"torch", "torchvision"}),
    "trainers": (set(), {"azure.functions"}),
}

# Within shared/: each part may import those before it, and no other. What it needs of a later one it asks for through a
# port of its own (shared/runs/ports.py), or states as a fact, from which shared/reactions.py has what follows.
ORDER = (
    *("kernel", "features", "events", "jobs", "runs"),
    *(
        "drops",
        "clusters",
        "money",
        "schedules",
        "removals",
        "notices",
        "models",
        "pipelines",
        "deadlines",
        "elastic",
        "sweeps",
        "usage",
        "diagnosis",
        "data_checks",
        "grants",
    ),
    *(
        "ports",
        "messages",
        "reactions",
        "reconcile",
        "daily",
        "api",
        "agents",
        "adapters",
        "system",
        "wiring",
        "bootstrap",
    ),
)
KNOW_THE_SYSTEM = {"shared.bootstrap", "shared.wiring"}  # besides the triggers; all other modules declare their ports

# Deciding modules, whose result depends only on their arguments: those of these names, and those that declare it.
PURE_NAMES = {"model.py", "decide.py"}
IMPURE_IMPORTS = {
    "asyncio", "http", "logging", "os", "pathlib", "random", "secrets", "shutil", "socket", "subprocess", "sys",
    "tempfile", "threading", "time", "urllib", "shared.adapters", "shared.bootstrap", "shared.system", "shared.wiring",
}  # fmt: skip
IMPURE_CALLS = {"open", "print", "input", "datetime.now", "datetime.utcnow", "date.today"}


def imports(path: Path) -> Iterator[str]:
    """Yield the modules that this module imports, in functions too."""
    yield from _imports(path, path.read_text("utf-8"))


@cache
def _imports(path: Path, text: str) -> tuple[str, ...]:
    return tuple(_imports_in(path, text))


def _imports_in(path: Path, text: str) -> Iterator[str]:
    tree = ast.parse(text, str(path))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = [*path.relative_to(ROOT).parts[: -node.level]] if node.level else []
            base = ".".join([*parts, *([node.module] if node.module else [])])
            yield from (f"{base}.{alias.name}" for alias in node.names)  # `from azure import functions` counts


def within(name: str, packages: set[str]) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def offences(path: Path, place: str) -> list[str]:
    allowed, forbidden = TABLE[place]
    ours = OURS - allowed - {place.removesuffix(".py")}
    if place == "shared" and "adapters" not in path.relative_to(ROOT).parts:
        forbidden = forbidden | {"azure"}
    return [
        f"{path.relative_to(ROOT)} imports {name}"
        for name in imports(path)
        if within(name, ours | forbidden) and not within(name, allowed)
    ]


@pytest.mark.parametrize("place", TABLE)
def test_imports_go_one_way(place: str) -> None:
    """function_app -> functions -> shared; local -> emulators, cli; others nothing of ours; Azure in adapters only."""
    files = [ROOT / place] if place.endswith(".py") else sorted((ROOT / place).rglob("*.py"))
    assert [line for path in files for line in offences(path, place)] == []


def impurities(path: Path) -> list[str]:
    """The parts of a module that do I/O or could do I/O."""
    tree = ast.parse(path.read_text("utf-8"), str(path))
    found = [f"imports {name}" for name in imports(path) if within(name, IMPURE_IMPORTS)]
    calls = (ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call))
    return found + [f"calls {call}" for call in calls if call in IMPURE_CALLS]


def pure_modules() -> list[Path]:
    paths = sorted((ROOT / "shared").rglob("*.py"))
    return [p for p in paths if p.name in PURE_NAMES or " Pure.\n" in p.read_text("utf-8")[:600]]


@pytest.mark.parametrize("path", pure_modules(), ids=lambda p: str(p.relative_to(ROOT)))
def test_decisions_do_no_io(path: Path) -> None:
    """Models, decisions and modules marked as pure read no clock, no file and no service."""
    assert impurities(path) == []


def module(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def import_graph(files: list[Path]) -> dict[str, set[str]]:
    """For each module, the modules that it imports anywhere, in functions too."""
    known = {module(path) for path in files}
    graph: dict[str, set[str]] = {}
    for path in files:
        names = {name if name in known else name.rpartition(".")[0] for name in imports(path)}
        graph[module(path)] = (names & known) - {module(path)}
    return graph


@cache
def shared_graph() -> dict[str, set[str]]:
    return import_graph(sorted((ROOT / "shared").rglob("*.py")))


def backwards(graph: dict[str, set[str]]) -> list[str]:
    """The imports that go against ORDER, or come from a folder that is not in ORDER."""
    rank = {place: number for number, place in enumerate(ORDER)}
    pairs = [(name, other) for name, names in graph.items() for other in names if "." in name and "." in other]
    return sorted(
        f"{name} imports {other}"
        for name, other in pairs
        if rank.get(name.split(".")[1], -1) < rank.get(other.split(".")[1], len(ORDER))
    )


def test_shared_is_an_order() -> None:
    """No part of shared/ imports a part that comes later, not even for a type."""
    assert backwards(shared_graph()) == []


def test_signatures_say_what_they_touch() -> None:
    """Only the composition root and the triggers use the whole system."""
    knowing = {name for name, names in shared_graph().items() if "shared.system" in names}
    assert knowing == KNOW_THE_SYSTEM


@pytest.mark.parametrize("place", ["shared", "functions", "cli", "trainers"])
def test_no_modules_import_each_other(place: str) -> None:
    """There is an order in which every module comes after all modules that it imports."""
    try:
        list(TopologicalSorter(import_graph(sorted((ROOT / place).rglob("*.py")))).static_order())
    except CycleError as exc:
        pytest.fail(" -> ".join(exc.args[1]))


def test_no_code_changes_the_class_of_a_thing() -> None:
    """An object, or a module, keeps its class: nothing assigns to `__class__`."""
    texts = {path: path.read_text("utf-8") for place in TABLE for path in (ROOT / place).rglob("*.py")}
    assert texts
    changed = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path, text in texts.items()
        for node in ast.walk(ast.parse(text if "__class__" in text else ""))
        if isinstance(node, ast.Attribute) and node.attr == "__class__" and isinstance(node.ctx, ast.Store)
    ]
    assert changed == []


def test_the_tables_can_fail(tmp_path: Path) -> None:
    """The rules find an import inside a function, an import by `from`, an impure call and a circle."""
    file = tmp_path / "bad.py"
    file.write_text("from azure import functions\ndef f():\n    import torch.nn\n    open('x')\n    datetime.now()\n")
    assert [name for name in imports(file) if within(name, {"torch", "azure.functions"})] == [
        "azure.functions",
        "torch.nn",
    ]
    assert impurities(file) == ["calls open", "calls datetime.now"]
    assert backwards({"shared.runs.model": {"shared.money.model"}, "shared.money.model": {"shared.runs.model"}}) == [
        "shared.runs.model imports shared.money.model"
    ]
    with pytest.raises(CycleError):
        list(TopologicalSorter({"a": {"b"}, "b": {"a"}}).static_order())

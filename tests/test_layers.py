"""Who may import whom, read from the source with ast."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = {"functions", "shared", "cli", "emulators", "local", "trainers", "benchmarks", "tests"}
OURS = PACKAGES | {"function_app", "trainyard"}

# folder: (which of our packages it may import besides itself, which foreign packages it must not import)
TABLE: dict[str, tuple[set[str], set[str]]] = {
    "function_app.py": ({"functions"}, {"torch", "torchvision"}),
    "functions": ({"shared"}, {"torch", "torchvision", "azure.storage", "azure.data", "azure.ai", "azure.eventgrid"}),
    "shared": (set(), {"torch", "torchvision", "azure.functions"}),
    "cli": (set(), {"torch", "torchvision", "azure.ai", "azure.data", "azure.functions"}),
    "emulators": (set(), {"torch", "torchvision"}),
    "local": ({"emulators", "cli"}, {"torch", "torchvision"}),
    "trainers": (set(), {"azure.functions"}),
}


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"), str(path))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)  # `from azure import functions` counts


def within(name: str, packages: set[str]) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def offences(path: Path, place: str) -> list[str]:
    allowed, forbidden = TABLE[place]
    ours = OURS - allowed - {place.removesuffix(".py")}
    if place == "shared" and "adapters" not in path.relative_to(ROOT).parts:
        forbidden = forbidden | {"azure"}
    return [f"{path.relative_to(ROOT)} imports {name}" for name in imports(path) if within(name, ours | forbidden)]


@pytest.mark.parametrize("place", TABLE)
def test_imports_go_one_way(place: str) -> None:
    """function_app -> functions -> shared; local -> emulators, cli; others nothing of ours; Azure in adapters only."""
    files = [ROOT / place] if place.endswith(".py") else sorted((ROOT / place).rglob("*.py"))
    assert [line for path in files for line in offences(path, place)] == []


def test_the_table_can_fail(tmp_path: Path) -> None:
    """An import inside a function, and one by `from`, are both seen."""
    file = tmp_path / "bad.py"
    file.write_text("from azure import functions\ndef f():\n    import torch.nn\n")
    assert [name for name in imports(file) if within(name, {"torch", "azure.functions"})] == [
        "azure.functions",
        "torch.nn",
    ]

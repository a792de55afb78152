"""Each class name of shared/ has one meaning. The tests read the source with ast and import nothing."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MAKERS = ("model_of", "defstruct")  # functions that return a class


def classes(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of each class, also of classes that a call makes, such as `X = model_of(...)`."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.Assign) and _makes_a_class(node.value):
            yield from ((node.lineno, target.id) for target in node.targets if isinstance(target, ast.Name))


def _makes_a_class(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and ast.unparse(value.func).rpartition(".")[2] in MAKERS


def repeated(files: dict[str, str]) -> list[str]:
    """Return the class names with several definitions, each with its places, from the texts of files by path."""
    places = defaultdict(list)
    for path, text in files.items():
        for line, name in classes(text):
            places[name].append(f"{path}:{line}")
    return sorted(f"{name}: {', '.join(found)}" for name, found in places.items() if len(found) > 1)


def test_each_class_of_shared_has_a_name_of_its_own() -> None:
    """A reader who searches for the name of a class finds one class. An API model of a record is `<Record>Answer`."""
    files = {str(path.relative_to(ROOT)): path.read_text("utf-8") for path in sorted((ROOT / "shared").rglob("*.py"))}
    assert repeated(files) == []


def test_a_repeated_class_name_is_found() -> None:
    """Class statements, nested classes and generated models count; variables and calls of other functions do not."""
    files = {
        "a.py": "class Wish: ...\nclass Outer:\n    class Loss: ...\nUse = thing()\n",
        "b.py": "Wish = model_of(__name__, Other)\nLoss = msgspec.defstruct('Loss', [])\nUse = 3\n",
    }
    assert repeated(files) == ["Loss: a.py:3, b.py:2", "Wish: a.py:1, b.py:1"]

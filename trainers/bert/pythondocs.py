"""Write the documentation inside this Python as text files: real text for the trainer, without a network.

$ python bert/pythondocs.py DIR

A file per module of the standard library with all its docstrings, and a file per topic of pydoc's help: 2.3 MB with
Python 3.11. The library's own tests are left out.
"""

from __future__ import annotations

import ast
import pydoc_data.topics
import sys
import sysconfig
from pathlib import Path

DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def write(folder: Path) -> int:
    """Write the texts below `folder`, and return their number of characters."""
    library = Path(sysconfig.get_path("stdlib"))
    texts = {f"topics/{name}.txt": text for name, text in pydoc_data.topics.topics.items()}
    for path in sorted(library.rglob("*.py")):
        module = path.relative_to(library)
        if {"site-packages", "test", "tests"}.isdisjoint(module.parts) and (text := docstrings(path)):
            texts[f"library/{module.with_suffix('.txt').as_posix()}"] = text
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return sum(map(len, texts.values()))


def docstrings(path: Path) -> str:
    """Return all docstrings of a module, in the order of ast.walk, separated by blank lines; "" if the module can't
    be parsed."""
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):  # templates and samples of broken code
        return ""
    found = (ast.get_docstring(node) for node in ast.walk(tree) if isinstance(node, DOCUMENTED))
    return "".join(f"{text}\n\n" for text in found if text)


if __name__ == "__main__":
    print(f"{write(Path(sys.argv[1])):,} characters in {sys.argv[1]}")

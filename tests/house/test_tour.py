"""docs/tour.md leads to existing functions, and takes less than an hour to read."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
TEXT = (DOCS / "tour.md").read_text("utf-8")
# A link to a file, and the functions named right after the link: `a`, `b` and `c`.
STOP = re.compile(r"\]\((\.\./[^)]+\.(?:py|jsx|js))\)((?:,?\s+(?:and\s+)?`\w+`)+)")
NAMED = [(path, name) for path, names in STOP.findall(TEXT) for name in re.findall(r"`(\w+)`", names)]
WORDS_AN_HOUR = 12_000  # an adult reads 200 to 250 words a minute


def source_of(path: str, name: str) -> str:
    """The source of the function with this name, or '' if the file has none."""
    text = (DOCS / path).resolve().read_text("utf-8")
    if not path.endswith(".py"):
        found = re.search(rf"^(?:export )?(?:async )?function {name}\b.*?^}}", text, re.MULTILINE | re.DOTALL)
        return found[0] if found else ""
    nodes = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return next((ast.get_source_segment(text, node) or "" for node in nodes if node.name == name), "")


@pytest.mark.parametrize(("path", "name"), NAMED)
def test_every_function_of_the_tour_is_there(path: str, name: str) -> None:
    """A renamed function makes the tour wrong."""
    assert source_of(path, name), f"{path} has no function {name}"


def test_the_tour_is_read_in_an_hour() -> None:
    """The page and its functions, without the docstrings of their files, are short enough; the page states the
    number of lines."""
    sources = [source_of(path, name) for path, name in NAMED]
    assert len(NAMED) > 20
    assert len(TEXT.split()) + sum(len(source.split()) for source in sources) < WORDS_AN_HOUR
    lines = sum(len(source.splitlines()) for source in sources)
    (said,) = re.findall(r"which have (?:some )?(\d+) lines", re.sub(r"\s+", " ", TEXT))
    assert abs(int(said) - lines) < 100

"""docs/events.md and docs/administrator.md match the code."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from typing import Any

from azure.core.messaging import CloudEvent

from shared.adapters.outgoing import eventgrid
from shared.jobs.routes_file import LIMITS
from tests.gate.scripts import ROOT

PAGE = (ROOT / "docs" / "events.md").read_text("utf-8")


def sent() -> Iterator[tuple[str, str, frozenset[str]]]:
    """(kind, subject, names of the data) of each call of `announce` in the app; a value in a subject is `<>`."""
    for file in (path for path in sorted((ROOT / "shared").rglob("*.py")) if "announce(" in path.read_text("utf-8")):
        for function in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(function, ast.FunctionDef):
                for call in announcements(function):
                    _, kind, subject, data = call.args[:4]
                    literal = assigned(function, data.id) if isinstance(data, ast.Name) else data
                    assert isinstance(literal, ast.Dict), f"{file}: the data of an event must be a literal"
                    names = frozenset(ast.literal_eval(key) for key in literal.keys if key)
                    for each in kinds(function, kind):
                        yield each, parts(ast.unparse(subject)), names


def announcements(function: ast.FunctionDef) -> Iterator[ast.Call]:
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "announce":
            yield node


def assigned(function: ast.FunctionDef, name: str) -> ast.expr | None:
    """The value that the function assigns to the variable."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == name:
            return node.value
    return None


def kinds(function: ast.FunctionDef, kind: ast.expr) -> list[str]:
    """The kind as written; `type(fact).__name__` stands for each type of fact that the function accepts."""
    if isinstance(kind, ast.Constant):
        return [str(kind.value)]
    annotation = next(arg.annotation for arg in function.args.args if arg.arg == "fact")
    assert annotation is not None
    return re.findall(r"(\w+)(?: \||$)", ast.unparse(annotation))


def parts(subject: str) -> str:
    """The subject with each part replaced by `<>`."""
    return re.sub(r"[^/]+", "<>", subject)


def told() -> Iterator[tuple[str, str, frozenset[str]]]:
    """The same triples from the page's table. A drop's key, `<route>/<name>`, is one value of the code."""
    for kind, subject, data in re.findall(r"^\| `Trainyard\.(\w+)` \| (.*?) \| (.*?) \|", PAGE, re.MULTILINE):
        form = subject.strip("`").replace("<route>/<name>", "<drop>")
        yield kind, parts(form), frozenset(re.findall(r"`(\w+)`", data))


def test_the_page_has_the_events_that_are_sent() -> None:
    """Types, forms of subjects and names of the data are equal in the page's table and in the code."""
    in_code = sorted(sent())
    assert sorted(told()) == in_code
    assert in_code, "no call of announce was found; has it another name?"


def test_the_example_is_such_an_event() -> None:
    """The example is a CloudEvent with our source, an id of kind and subject, and the data of its type."""
    found = re.search(r"```json\n(.*?)```", PAGE, re.DOTALL)
    assert found
    event: CloudEvent[Any] = CloudEvent.from_dict(json.loads(found[1]))
    kind = event.type.removeprefix(eventgrid._TYPE_PREFIX)
    data = {name: names for name, _, names in told()}
    assert (event.source, event.id) == (eventgrid._SOURCE, f"{kind}:{event.subject}")
    assert set(event.data or {}) == data[kind]


def test_the_administrators_page_has_every_decision_and_limit() -> None:
    """docs/clusters.md has each code of a decision, and docs/administrator.md each limit of the routes file."""
    code = (ROOT / "shared" / "clusters" / "decide.py").read_text("utf-8")
    codes = {*re.findall(r'code="(\w+)"', code), *re.findall(r'return "\w[\w-]*", "(\w+)"', code)}
    page = (ROOT / "docs" / "clusters.md").read_text("utf-8")
    assert {"busy", "expected", "leased", "idle", "over_budget", "broken", "pinned", "at_zero"} <= codes
    assert [name for name in sorted(codes) if f"| `{name}` |" not in page] == []
    limits = (ROOT / "docs" / "administrator.md").read_text("utf-8")
    assert [key for key in LIMITS if f"`{key}`" not in limits] == []

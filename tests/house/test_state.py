"""Where what a process remembers may be: in objects, and not beside a module's functions; read with ast."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

CACHES = {"cache", "functools.cache", "lru_cache", "functools.lru_cache", "WeakKeyDictionary", "WeakValueDictionary"}
CONTAINERS = {"dict", "list", "set", "defaultdict", "OrderedDict", "Counter", "deque", *CACHES}

# What may stay beside functions: none of it holds an answer from outside that could be old.
ALLOWED = {
    "shared/bootstrap.py cache": "the one system of a process, made at the first call",
    "functions/page.py cache": "files of the deployed app, which do not change",
    "functions/telemetry.py cache": "the tracer and the meters of a process",
    "shared/api/openapi.py cache": "made from the declared operations, which do not change",
    "shared/api/signature.py cache": "made from functions, which do not change",
    "shared/adapters/tables/records.py cache": "made from classes, which do not change",
    "shared/kernel/measure.py _listeners": "who is told of counts: registered once, when the app is loaded",
    "shared/kernel/parsing.py _decoders": "made from classes, which do not change",
    "shared/kernel/parts.py _columns_of": "made from classes, which do not change",
    "shared/deadlines/outlook.py lru_cache": "a calculation: the same arguments give the same plan",
    "shared/adapters/storage/listing.py lru_cache": "a calculation: the same text gives the same time",
    "shared/adapters/azureml/workspace.py _connections": "the SDK keeps a cloud's addresses in global variables",
}


def state(path: Path) -> Iterator[str]:
    """The caches that decorate the module's functions, and the empty containers that its names hold."""
    tree = ast.parse(path.read_text("utf-8"), str(path))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names = (ast.unparse(each.func if isinstance(each, ast.Call) else each) for each in node.decorator_list)
            yield from (name.removeprefix("functools.") for name in names if name in CACHES)
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None and _is_empty(node.value):
            yield ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target)


def _is_empty(value: ast.expr) -> bool:
    """Whether a module's name begins with an empty container, which functions then fill."""
    if isinstance(value, ast.Dict | ast.List):
        return not (value.keys if isinstance(value, ast.Dict) else value.elts)
    if not isinstance(value, ast.Call) or value.args:
        return False
    function = value.func.value if isinstance(value.func, ast.Subscript) else value.func
    return ast.unparse(function).rpartition(".")[2] in CONTAINERS


def test_what_a_process_remembers_is_in_objects() -> None:
    """No module of the app keeps a cache beside its functions: shared/kernel/memory.py remembers, with an age and a
    bound, and copies of the system share it."""
    files = [path for folder in ("shared", "functions") for path in sorted((ROOT / folder).rglob("*.py"))]
    found = {f"{path.relative_to(ROOT)} {name}" for path in files for name in state(path)}
    assert sorted(found - ALLOWED.keys()) == []
    assert sorted(ALLOWED.keys() - found) == [], "they are gone, so they need no exception"


def retries(path: Path) -> Iterator[str]:
    """The loops that begin again when a write met another one."""
    for loop in ast.walk(ast.parse(path.read_text("utf-8"), str(path))):
        if isinstance(loop, ast.For | ast.While):
            handlers = [each for node in ast.walk(loop) if isinstance(node, ast.Try) for each in node.handlers]
            if any(each.type and "Changed" in ast.unparse(each.type) for each in handlers):
                yield f"{path.relative_to(ROOT)}:{loop.lineno}"


NOT_RETRIES = {
    "shared/kernel/compare_and_set.py": "the one place",
    "shared/runs/progress/hourly_reconcile.py": "a loop over runs: one that changed is left to whoever changed it",
    "shared/schedules/fire.py": "a loop over firings",
    "shared/adapters/azureml/clusters.py": "once more, and only if an equal state had another etag",
}


def test_writes_are_retried_in_one_place() -> None:
    """Whoever reads, decides and writes does so with compare_and_set: its pauses grow, and it ends."""
    found = [line for path in sorted((ROOT / "shared").rglob("*.py")) for line in retries(path)]
    assert [line for line in found if line.partition(":")[0] not in NOT_RETRIES] == []

"""A process keeps its state in objects and not beside a module's functions; read with ast."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

CACHES = {"cache", "functools.cache", "lru_cache", "functools.lru_cache"}
CONTAINERS = {"dict", "list", "set", "defaultdict", "OrderedDict", "Counter", "deque", "WeakKeyDictionary"}
OUTSIDE = (".ports", "shared.kernel.storage", "shared.system")  # modules of ports, which answer from outside

ALLOWED = {
    "shared/kernel/measure.py _listeners": "who is told of counts: registered once, when the app is loaded",
    "shared/kernel/parsing.py _decoders": "made from classes, which do not change",
    "shared/kernel/parts.py _columns_of": "made from classes, which do not change",
    "shared/adapters/azureml/workspace.py _connections": "the SDK keeps a cloud's addresses in global variables",
}


def state(path: Path) -> Iterator[str]:
    """The cached functions that may ask for an answer from outside, and the module-level empty containers."""
    tree = ast.parse(path.read_text("utf-8"), str(path))
    outside = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").endswith(OUTSIDE)
        for alias in node.names
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _is_cached(node):
            parameters = [each.annotation for each in (*node.args.args, *node.args.kwonlyargs) if each.annotation]
            if any(isinstance(each, ast.Name) and each.id in outside for p in parameters for each in ast.walk(p)):
                yield node.name
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None and _is_empty(node.value):
            yield ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target)


def _is_cached(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    names = (each.func if isinstance(each, ast.Call) else each for each in function.decorator_list)
    return any(ast.unparse(name) in CACHES for name in names)


def _is_empty(value: ast.expr) -> bool:
    """Whether a module-level name starts as an empty container, which functions then fill."""
    if isinstance(value, ast.Dict | ast.List):
        return not (value.keys if isinstance(value, ast.Dict) else value.elts)
    if not isinstance(value, ast.Call) or value.args:
        return False
    function = value.func.value if isinstance(value.func, ast.Subscript) else value.func
    return ast.unparse(function).rpartition(".")[2] in CONTAINERS


def test_what_a_process_remembers_is_in_objects() -> None:
    """No module of the app caches outside answers beside its functions. shared/kernel/memory.py caches them with an
    age and a bound, and copies of the system share that cache. A calculation may be cached."""
    files = [path for folder in ("shared", "functions") for path in sorted((ROOT / folder).rglob("*.py"))]
    found = {f"{path.relative_to(ROOT)} {name}" for path in files for name in state(path)}
    assert sorted(found - ALLOWED.keys()) == []
    assert sorted(ALLOWED.keys() - found) == [], "they are gone, so they need no exception"


def test_a_cache_beside_functions_is_found(tmp_path: Path) -> None:
    """The rule finds the caches that once existed: a dictionary by system, and a cached function that reads a blob."""
    module = tmp_path / "module.py"
    module.write_text(
        "from weakref import WeakKeyDictionary\nfrom functools import lru_cache\n"
        "from shared.kernel.storage import Blobs\n"
        "_kept: WeakKeyDictionary[object, int] = WeakKeyDictionary()\n_more: dict[str, int] = {}\n"
        "@lru_cache(maxsize=16)\ndef _read(blobs: Blobs, folder: str) -> int: ...\n"
        "@lru_cache\ndef _twice(number: int) -> int: ...\n"
    )
    assert sorted(state(module)) == ["_kept", "_more", "_read"]


def retries(path: Path) -> Iterator[str]:
    """The loops that restart after a conflicting write."""
    text = path.read_text("utf-8")
    for loop in ast.walk(ast.parse(text if "Changed" in text else "", str(path))):
        if isinstance(loop, ast.For | ast.While):
            handlers = [each for node in ast.walk(loop) if isinstance(node, ast.Try) for each in node.handlers]
            if any(each.type and "Changed" in ast.unparse(each.type) for each in handlers):
                yield f"{path.relative_to(ROOT)}:{loop.lineno}"


NOT_RETRIES = {
    "shared/kernel/compare_and_set.py": "the one place",
    "shared/runs/progress/hourly_reconcile.py": "a loop over runs: one that changed is left to whoever changed it",
    "shared/adapters/azureml/clusters.py": "once more, and only if an equal state had another etag",
}


def test_writes_are_retried_in_one_place() -> None:
    """Code that reads, decides and writes uses compare_and_set, whose pauses grow and whose retries end."""
    found = {line for path in sorted((ROOT / "shared").rglob("*.py")) for line in retries(path)}
    assert sorted(line for line in found if line.partition(":")[0] not in NOT_RETRIES) == []
    assert sorted(NOT_RETRIES.keys() - {line.partition(":")[0] for line in found}) == []


def test_each_topic_has_a_name_of_its_own() -> None:
    """Two cached topics of one name would return each other's answers."""
    names = [
        ast.literal_eval(node.args[0])
        for folder in ("shared", "functions")
        for path in sorted((ROOT / folder).rglob("*.py"))
        if "Topic[" in (text := path.read_text("utf-8"))
        for node in ast.walk(ast.parse(text, str(path)))
        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("Topic[")
    ]
    assert len(names) > 10
    assert [name for name in names if names.count(name) > 1] == []

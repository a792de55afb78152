"""Generate the list of operations in docs/api.md and the table of roles in docs/security.md from the declarations."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from shared.api.registry import GROUPS, OPERATIONS  # noqa: E402
from shared.api.signature import signature  # noqa: E402
from shared.kernel.operation import ANYONE, CODER, CONTRIBUTOR, READER, Operation, OperationGroup  # noqa: E402

BEGIN = "<!-- made by .ci/generate.py from the declarations of operations; do not edit -->"
END = "<!-- end of what .ci/generate.py made -->"
ROLES = {"anyone": ANYONE, "reader": READER, "contributor": CONTRIBUTOR, "coder": CODER}
PAGE = "GET page/{*path}"  # files of the page, which hold no data


def pages() -> dict[Path, str]:
    """Return the text of both pages with the generated parts."""
    parts = {"api.md": "\n\n".join(map(_group, GROUPS)), "security.md": "\n".join(_roles())}
    return {ROOT / "docs" / name: _with(ROOT / "docs" / name, part) for name, part in parts.items()}


def _with(page: Path, part: str) -> str:
    text = page.read_text("utf-8")
    before, after = text.partition(BEGIN)[0], text.partition(END)[2]
    return f"{before}{BEGIN}\n{part}\n{END}{after}"


def _group(group: OperationGroup) -> str:
    about = [group.about, ""] if group.about else []
    return "\n".join([f"### {group.title}", "", *about, *map(_operation, group.operations)])


def _operation(operation: Operation) -> str:
    declared = signature(operation)
    statuses = [str(status) for status in declared.answers]
    words = [operation.summary, *([operation.details] if operation.details else [])]
    if "key" in declared.takes:
        words.append("Takes an [Idempotency-Key](#repeats)")
    if operation.no_key:
        words.append("Refuses an [Idempotency-Key](#repeats)")
    told = "" if statuses == ["200"] else f" gives {' or '.join(statuses)}"
    return f"- {operation.method} `/api/{operation.path}`{told}: {'. '.join(words)}."


def _roles() -> Iterator[str]:
    yield "| role | may call, besides what the roles above it may |"
    yield "|---|---|"
    for name, role in ROLES.items():
        calls = [f"`{each.method} {each.path}`" for each in OPERATIONS if each.role == role]
        if role == ANYONE:
            calls.append(f"`{PAGE}`")
        if role == CODER:
            calls += [f"`{each.method} {each.path}` with {each.code}" for each in OPERATIONS if each.code]
        yield f"| {name} | {', '.join(calls)} |"

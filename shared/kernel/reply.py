"""What an operation of the API may answer besides plain JSON, and who calls it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from shared.kernel.person import Person

JSON, TEXT, PROBLEM = "application/json", "text/plain", "application/problem+json"


@dataclass(frozen=True)
class Reply:
    """An answer with a status or headers of its own. The value is JSON, bytes of TEXT, or None for no body."""

    value: Any
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    media_type: str = JSON


def problem(status: int, code: str, detail: str, headers: Mapping[str, str] | None = None) -> Reply:
    """An error as RFC 9457 has it."""
    title = code.replace("_", " ")
    body = {"type": "about:blank", "title": title, "status": status, "detail": detail, "code": code}
    return Reply(body, status, headers or {}, PROBLEM)


@dataclass(frozen=True)
class Caller:
    """Who calls, and what they may do. Whoever has a key of the host may do everything."""

    auth: str  # keys or entra
    person: Person
    may_change: bool

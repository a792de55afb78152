"""Answers of the API besides plain JSON, and the caller of an operation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from shared.kernel.person import Person

JSON, TEXT, PROBLEM = "application/json", "text/plain", "application/problem+json"


@dataclass(frozen=True)
class Reply:
    """An answer with its own status or headers. The value is JSON, bytes of TEXT, or None for no body."""

    value: Any
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    media_type: str = JSON


def problem(status: int, code: str, detail: str, headers: Mapping[str, str] | None = None) -> Reply:
    """Return an error in the format of RFC 9457."""
    title = code.replace("_", " ")
    body = {"type": "about:blank", "title": title, "status": status, "detail": detail, "code": code}
    return Reply(body, status, headers or {}, PROBLEM)


@dataclass(frozen=True)
class Caller:
    """The caller and the caller's rights. A caller with a key of the host has all rights.

    `role` is the highest role of the caller, '' for a program with a token.
    """

    auth: str  # keys, entra or grant
    person: Person
    may_change: bool
    role: str = ""


class CallOperation(Protocol):
    """Calls a declared operation for the caller of the current one, as if the call had come over HTTP."""

    def __call__(
        self,
        name: str,
        *,
        path: Mapping[str, str] | None = None,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        key: str | None = None,
    ) -> Any:
        """Return the operation's JSON. Raises the operation's errors, and Forbidden if the caller may not call it."""

"""Ids of what a request makes: the same for the same Idempotency-Key, so a repeat finds what the first request made."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from shared.kernel.errors import Conflict


def id_for(prefix: str, key: str | None, new_token: Callable[[], str]) -> str:
    """The id that this key always gives; without a key a new one. It says nothing of the request, so that another
    request under the same key meets what the first one made."""
    return f"{prefix}-{hashlib.sha256(key.encode()).hexdigest()[:16] if key else new_token()}"


def used_for_another(what: str) -> Conflict:
    """The error for a key that made this from another request."""
    return Conflict(f"This Idempotency-Key made {what} from another request. Use a new key.", "idempotency_conflict")

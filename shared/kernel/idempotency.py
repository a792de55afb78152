"""Ids derived from the Idempotency-Key: a repeated request finds the result of the first request."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from shared.kernel.errors import Conflict


def id_for(prefix: str, key: str | None, new_token: Callable[[], str]) -> str:
    """Return the id for this key. Equal keys give equal ids. Without a key the id is new.

    The id does not depend on the request, so a different request with the same key finds the object that the first
    request created.
    """
    return f"{prefix}-{hashlib.sha256(key.encode()).hexdigest()[:16] if key else new_token()}"


def used_for_another(what: str) -> Conflict:
    """Return the error for a key with which a different request already created an object."""
    return Conflict(
        f"This Idempotency-Key was used for {what} by another request. Use a new key.", "idempotency_conflict"
    )

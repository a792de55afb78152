"""A public key with which this deployment signs or signed models."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class SigningKey:
    """A key on P-256. It signed from `since` until `until` (None: it still signs).

    Since `withdrawn_at`, no signature of this key counts; `by` and `why` tell who withdrew the key and for what reason.
    """

    sha256: str  # of the PEM, as signatures name the key
    pem: str
    since: datetime
    until: datetime | None = None
    withdrawn_at: datetime | None = None
    by: str = ""
    by_id: str = ""
    why: str = ""

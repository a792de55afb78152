"""The bearer token of a grant: `tg_<id>_<secret>`, with a secret of 256 random bits. Records contain only its SHA-256.

A fast hash suffices, because 256 random bits can't be guessed. The comparison takes the same time for each wrong
secret.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from typing import NamedTuple

TOKEN = re.compile(r"tg_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")


class NewToken(NamedTuple):
    """The id of a grant, the token for the grant's program, and the digest of the token's secret for the record."""

    grant: str
    token: str
    digest: str


def new_token() -> NewToken:
    grant, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    return NewToken(grant, f"tg_{grant}_{secret}", digest_of(secret))


def digest_of(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def parts_of(token: str) -> tuple[str, str] | None:
    """Return the grant's id and the secret of a token; None for any other text."""
    match = TOKEN.fullmatch(token)
    return (match[1], match[2]) if match else None


def is_secret(secret: str, digest: str) -> bool:
    return hmac.compare_digest(digest_of(secret), digest)

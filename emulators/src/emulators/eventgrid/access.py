"""Authorization of publishers to a topic: the topic's key, an unexpired signature made with the key, or a bearer
token. No I/O.

https://learn.microsoft.com/azure/event-grid/authenticate-with-access-keys-shared-access-signatures
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from urllib.parse import parse_qs, urlsplit

from emulators.eventgrid.config import Topic

# The time formats of Python, ISO 8601 and .NET's invariant culture. Event Grid accepts what .NET can parse.
FORMATS = ("%m/%d/%Y %I:%M:%S %p", "%m/%d/%Y %H:%M:%S")
NEEDS = "the request needs this topic's aeg-sas-key or aeg-sas-token, or a bearer token"


def new_key() -> str:
    """Return a new key in the format of topics: 32 random bytes in base64. `generate_sas` can sign with it."""
    return base64.b64encode(secrets.token_bytes(32)).decode()


def refusal(topic: Topic, headers: Mapping[str, str], path: str, now: datetime) -> str | None:
    """Return the reason why a request to `path` may not publish, or None if it may. Any bearer token is accepted."""
    if headers.get("Authorization", "").startswith("Bearer "):
        return None
    key, token = headers.get("aeg-sas-key", ""), headers.get("aeg-sas-token", "")
    if key:
        return None if topic.key is None or hmac.compare_digest(_sent(key), topic.key.encode()) else NEEDS
    return _token_refusal(topic, token, path, now) if token else NEEDS


def _token_refusal(topic: Topic, token: str, path: str, now: datetime) -> str | None:
    unsigned, _, _ = token.partition("&s=")
    given = {name: values[0] for name, values in parse_qs(token).items()}
    if topic.key is not None and not _signed(unsigned, given.get("s", ""), topic.key):
        return NEEDS
    if urlsplit(given.get("r", "")).path.rstrip("/").lower() != path.rstrip("/").lower():
        return f"the aeg-sas-token is signed for {given.get('r', '')!r:.200}, not for this topic"
    expiry = _time(given.get("e", ""))
    if expiry is None:
        return f"the aeg-sas-token's expiry (e) is {given.get('e', '')!r:.60}, which is not a time"
    return f"the aeg-sas-token expired at {expiry.isoformat()}" if expiry <= now else None


def _signed(unsigned: str, signature: str, key: str) -> bool:
    try:
        digest = hmac.new(base64.b64decode(key, validate=True), _sent(unsigned), hashlib.sha256).digest()
    except binascii.Error:  # a key that is not base64 can't sign
        return False
    return hmac.compare_digest(base64.b64encode(digest), _sent(signature))


def _sent(text: str) -> bytes:
    """Return the bytes of a header, including bytes that are not UTF-8."""
    return text.encode(errors="surrogateescape")


def _time(text: str) -> datetime | None:
    """Parse a time. A time without a zone is in UTC."""
    found = None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        for pattern in FORMATS:
            try:
                found = datetime.strptime(text, pattern)
                break
            except ValueError:
                continue
    return found.replace(tzinfo=UTC) if found and found.tzinfo is None else found

"""Entra ID tokens between the emulators: one emulator issues tokens, and other emulators with the key accept them.

https://learn.microsoft.com/entra/identity-platform/access-token-claims-reference describes the claims. Azure signs with
a key pair; here both sides share a secret from their configurations, which no job can see.
"""

from __future__ import annotations

import base64
import hmac
import json
import time
from typing import Any

TENANT = "00000000-0000-0000-0000-0000000000aa"
LIFETIME_SECONDS = 86400
ALGORITHM = "HS256"


def issue(key: str, principal: str, audience: str) -> str:
    """Return a token for the identity with this object id, valid for `audience` only."""
    now = int(time.time())
    claims = {"aud": audience, "iss": f"https://sts.windows.net/{TENANT}/", "tid": TENANT, "oid": principal}
    head = _part({"alg": ALGORITHM, "typ": "JWT"})
    text = f"{head}.{_part({**claims, 'iat': now, 'nbf': now, 'exp': now + LIFETIME_SECONDS})}"
    return f"{text}.{_encoded(hmac.digest(key.encode(), text.encode(), 'sha256'))}"


def _part(claims: dict[str, Any]) -> str:
    return _encoded(json.dumps(claims, separators=(",", ":")).encode())


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def principal_of(token: str, key: str, audience: str) -> str:
    """Return the object id in a token for `audience`. Raises ValueError, with the reason, for an invalid token."""
    import jwt  # its cryptography takes a quarter of the storage service's start

    audiences = [audience, f"{audience}/"]
    try:
        claims = jwt.decode(token, key, [ALGORITHM], {"require": ["aud", "exp", "oid"]}, audience=audiences, leeway=60)
    except jwt.PyJWTError as error:
        raise ValueError(f"the token is not accepted: {error}") from error
    return str(claims["oid"])

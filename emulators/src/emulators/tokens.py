"""Entra ID tokens between the emulators: one emulator issues tokens, and other emulators with the key accept them.

https://learn.microsoft.com/entra/identity-platform/access-token-claims-reference describes the claims. Azure signs with
a key pair; here both sides share a secret from their configurations, which no job can see.
"""

from __future__ import annotations

import time

import jwt

TENANT = "00000000-0000-0000-0000-0000000000aa"
LIFETIME_SECONDS = 86400
ALGORITHM = "HS256"


def issue(key: str, principal: str, audience: str) -> str:
    """Return a token for the identity with this object id, valid for `audience` only."""
    now = int(time.time())
    claims = {"aud": audience, "iss": f"https://sts.windows.net/{TENANT}/", "tid": TENANT, "oid": principal}
    return jwt.encode({**claims, "iat": now, "nbf": now, "exp": now + LIFETIME_SECONDS}, key, ALGORITHM)


def principal_of(token: str, key: str, audience: str) -> str:
    """Return the object id of a token for `audience`. Raises ValueError, with the reason, for a token that is not
    valid."""
    audiences = [audience, f"{audience}/"]
    try:
        claims = jwt.decode(token, key, [ALGORITHM], {"require": ["aud", "exp", "oid"]}, audience=audiences, leeway=60)
    except jwt.PyJWTError as error:
        raise ValueError(f"the token is not accepted: {error}") from error
    return str(claims["oid"])

"""Entra ID tokens whose signature is not checked: `"oauth": "basic"`, like `azurite --oauth basic`.

The claims are checked as Azurite documents it: audience, issuer, and period of validity. A token allows everything
except reading or changing stored access policies. https://github.com/Azure/Azurite#oauth-configuration
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from emulators.storage.common.errors import StorageError, unauthenticated
from emulators.storage.common.identities import AUDIENCE, Identities
from emulators.storage.common.rights import Right

APPLICATION = "e406a681-f3d4-42a8-90b6-c2b029497af1"  # the id of Azure Storage in every tenant
CLOUDS = ("core.windows.net", "core.chinacloudapi.cn", "core.usgovcloudapi.net", "core.cloudapi.de")
ISSUERS = (
    "https://sts.windows.net",
    "https://sts.microsoftonline.de",
    "https://sts.chinacloudapi.cn",
    "https://sts.windows-ppe.net",
)


class Unsigned(Identities):
    """Admits any token with the right claims, for one service of the account."""

    def __init__(self, account: str, service: str, clock: Callable[[], float]) -> None:
        super().__init__("")
        hosts = {f"https://{account}.{service}.{cloud}" for cloud in CLOUDS}
        object.__setattr__(self, "_audiences", {AUDIENCE, APPLICATION, *hosts})  # the base class is frozen
        object.__setattr__(self, "_clock", clock)

    def principal(self, token: str) -> str:
        """Return the object id in a token. Raises StorageError, 403, with the name of the wrong claim."""
        claims = _claims(token)
        now = self._clock()  # type: ignore[attr-defined]
        audience, issuer = str(claims.get("aud", "")), str(claims.get("iss", ""))
        if _number(claims, "nbf", now) > now:
            raise unauthenticated(f"Lifetime validation failed: the token is not valid before nbf={claims['nbf']}.")
        if _number(claims, "exp", 0) <= now:
            raise unauthenticated(f"Lifetime validation failed. The token is expired: exp={claims.get('exp')}.")
        if not issuer.startswith(ISSUERS):
            raise unauthenticated(f"The issuer {issuer!r:.200} is none of {', '.join(ISSUERS)}.")
        if audience.removesuffix("/") not in self._audiences:  # type: ignore[attr-defined]
            raise unauthenticated(f"The audience {audience!r:.200} is none of this service, for example {AUDIENCE}.")
        return str(claims.get("oid", ""))

    def check(self, principal: str, service: str, right: Right) -> None:  # noqa: ARG002
        """Raise StorageError, 403, for a request about stored access policies."""
        if right.action.endswith("Acl/action"):
            sentence = "Server failed to authenticate the request. Tokens may not use stored access policies."
            raise StorageError(403, "AuthorizationFailure", sentence)


def _claims(token: str) -> dict[str, Any]:
    import jwt  # it imports cryptography, so only at the first token

    try:
        found: dict[str, Any] = jwt.decode(token, options={"verify_signature": False})
    except jwt.PyJWTError as error:
        raise unauthenticated(f"The token can't be read: {error}") from error
    return found


def _number(claims: dict[str, Any], name: str, default: float) -> float:
    value = claims.get(name, default)
    if not isinstance(value, int | float):
        raise unauthenticated(f"The claim {name} is {value!r:.40}; it is a number of seconds since 1970.")
    return value

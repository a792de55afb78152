"""Who may call what. By default the host asks for a function key; with TRAINYARD_AUTH=entra, roles decide.

Whoever reads needs the role reader, whoever changes something contributor, who may read too. docs/security.md has the
table of all routes, and a test that walks it.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Mapping
from typing import Any

import azure.functions as func

from shared.kernel.errors import BadSetting

READER, CONTRIBUTOR = "trainyard.reader", "trainyard.contributor"
_ROLE_CLAIMS = ("roles", "http://schemas.microsoft.com/ws/2008/06/identity/claims/role")


class Denied(Exception):
    """The caller is unknown (401), or may not do this (403)."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def by_roles() -> bool:
    return os.environ.get("TRAINYARD_AUTH") == "entra"


def level() -> func.AuthLevel:
    """What the host asks for before it calls a function: with Entra ID nothing, because App Service was there first."""
    return func.AuthLevel.ANONYMOUS if by_roles() else func.AuthLevel.FUNCTION


def admit(req: func.HttpRequest) -> None:
    """Raise Denied unless the caller's roles allow this request. Without roles the host's keys have decided already."""
    if by_roles():
        check(req.method, req.headers, os.environ)


def check(method: str, headers: Mapping[str, str], env: Mapping[str, str]) -> None:
    """Raise Denied unless the headers name someone who may use this method.

    The headers are App Service's own word only while its authentication is on: then it removes what a caller wrote into
    them. WEBSITE_AUTH_ENABLED is its sign; without it anyone could be anyone, so nobody is let in.
    """
    if env.get("WEBSITE_AUTH_ENABLED", "").lower() != "true":
        raise BadSetting(
            "TRAINYARD_AUTH is entra, but App Service authentication is off (WEBSITE_AUTH_ENABLED). Turn it on."
        )
    roles = _roles(headers)
    wanted = READER if method in ("GET", "HEAD") else CONTRIBUTOR
    if not roles & {wanted, CONTRIBUTOR}:
        raise Denied(
            403, f"This needs the role {wanted}. An administrator assigns it in the app's enterprise application."
        )


def _roles(headers: Mapping[str, str]) -> set[str]:
    """The roles of X-MS-CLIENT-PRINCIPAL: base64 of JSON with claims of `typ` and `val`."""
    text = next((value for name, value in headers.items() if name.lower() == "x-ms-client-principal"), "")
    try:
        principal: Any = json.loads(base64.b64decode(text, validate=True))
        claims = [(claim["typ"], claim["val"]) for claim in principal["claims"]]
        known = (*_ROLE_CLAIMS, principal.get("role_typ"))
        provider = principal.get("auth_typ")
    except (ValueError, KeyError, TypeError, AttributeError) as exc:
        raise Denied(401, "Sign in with Microsoft Entra ID: the request names no caller.") from exc
    if provider != "aad":
        raise Denied(401, "Sign in with Microsoft Entra ID; other providers are not accepted.")
    return {str(value) for kind, value in claims if kind in known}

"""Who may call what. By default the host asks for a function key; with TRAINYARD_AUTH=entra, roles decide.

Each operation declares its role (shared/kernel/operation.py); a role has the rights of those before it.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import azure.functions as func

from shared.kernel.errors import BadInput, BadSetting
from shared.kernel.index_settings import app_service_signs_in, asks_entra
from shared.kernel.operation import ANYONE, CODER, CONTRIBUTOR, ROLES
from shared.kernel.person import Person

if TYPE_CHECKING:
    from shared.kernel.reply import Caller

CALLER = "x-trainyard-caller"  # percent-encoded
_NAME_LIMIT = 256  # characters
_ID_CLAIMS = ("http://schemas.microsoft.com/identity/claims/objectidentifier", "oid")
_NAME_CLAIMS = (
    "preferred_username",
    "http://schemas.xmlsoap.org/ws/2005/05/identity/claims/upn",
    "http://schemas.xmlsoap.org/ws/2005/05/identity/claims/name",
    *_ID_CLAIMS,
)
_ROLE_CLAIMS = ("roles", "http://schemas.microsoft.com/ws/2008/06/identity/claims/role")


class Denied(Exception):
    """The caller is unknown (401), may not do this (403), or sent a body that can't be read (411)."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def by_roles() -> bool:
    return asks_entra(os.environ)


def level() -> func.AuthLevel:
    """What the host asks for before it calls a function: with Entra ID nothing, because App Service was there first."""
    return func.AuthLevel.ANONYMOUS if by_roles() else func.AuthLevel.FUNCTION


def admit(req: func.HttpRequest, role: str) -> None:
    """Raise Denied unless the caller has the role. Without roles the host's keys have decided already."""
    if role != ANYONE and by_roles():
        check(role, req.method, req.headers, os.environ)


def check(role: str, method: str, headers: Mapping[str, str], env: Mapping[str, str]) -> None:
    """Raise Denied unless the headers name someone with the role, who may use this method.

    The headers are App Service's own word only while its authentication is on: then it removes what a caller wrote into
    them. WEBSITE_AUTH_ENABLED is its sign; without it anyone could be anyone, so nobody is let in.
    """
    if not app_service_signs_in(env):
        raise BadSetting(
            "TRAINYARD_AUTH is entra, but App Service authentication is off (WEBSITE_AUTH_ENABLED). Turn it on."
        )
    if method not in ("GET", "HEAD"):
        _check_site(headers)
    need(headers, role)


def _check_site(headers: Mapping[str, str]) -> None:
    """Raise Denied for what a page of another site sends: the browser adds the cookie of whoever is signed in here.

    Browsers say of each request whose page sent it (Sec-Fetch-Site); programs, which have no such cookie, say nothing.
    """
    if _header(headers, "sec-fetch-site") not in ("", "same-origin", "none"):
        raise Denied(403, "A page of another site may not change anything here.")


def _header(headers: Mapping[str, str], lower_name: str) -> str:
    return next((value for name, value in headers.items() if name.lower() == lower_name), "")


def admit_code(req: func.HttpRequest) -> None:
    """Raise Denied unless the caller may run code of their own. Without roles the routes file alone decides that."""
    if by_roles():
        need(req.headers, CODER)


def need(headers: Mapping[str, str], role: str) -> None:
    """Raise Denied unless the headers name someone with this role, or one that has its rights too."""
    if not _roles(headers) & set(ROLES[ROLES.index(role) :]):
        raise Denied(
            403, f"This needs the role {role}. An administrator assigns it in the app's enterprise application."
        )


def who(req: func.HttpRequest) -> Person:
    """The caller, as the records of what people do have them.

    With Entra ID that is their sign-in name, else their object id; and the object id, which stays when the name
    changes. With keys everybody who has one may do everything, so the name is the caller's own word: the header CALLER.
    """
    if by_roles():
        claims = _claims(req.headers)
        return Person(_first(claims, _NAME_CLAIMS), _first(claims, _ID_CLAIMS))
    from shared.kernel.parsing import one_line

    return Person(one_line((req.headers.get(CALLER) or "")[:_NAME_LIMIT]))


def caller(req: func.HttpRequest) -> Caller:
    """The caller, and whether they may do more than look."""
    from shared.kernel.reply import Caller

    may_change = not by_roles() or bool(_roles(req.headers) & {CONTRIBUTOR, CODER})
    return Caller("entra" if by_roles() else "keys", who(req), may_change)


def _first(claims: list[tuple[str, str]], kinds: tuple[str, ...]) -> str:
    return next((value for kind in kinds for claim, value in claims if claim == kind), "")[:_NAME_LIMIT]


def _roles(headers: Mapping[str, str]) -> set[str]:
    return {value for kind, value in _claims(headers) if kind in _ROLE_CLAIMS}


def _claims(headers: Mapping[str, str]) -> list[tuple[str, str]]:
    """The claims of X-MS-CLIENT-PRINCIPAL, base64 of JSON with claims of `typ` and `val`, as pairs."""
    from shared.kernel import parsing

    text = _header(headers, "x-ms-client-principal")
    try:
        principal: Any = parsing.read_json(base64.b64decode(text, validate=True), "The principal")
        claims = [(str(claim["typ"]), str(claim["val"])) for claim in principal["claims"]]
        role, provider = principal.get("role_typ"), principal.get("auth_typ")
    except (BadInput, ValueError, KeyError, TypeError, AttributeError) as exc:
        raise Denied(401, "Sign in with Microsoft Entra ID: the request names no caller.") from exc
    if provider != "aad":
        raise Denied(401, "Sign in with Microsoft Entra ID; other providers are not accepted.")
    return [("roles" if kind == role else kind, value) for kind, value in claims]

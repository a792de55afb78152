"""Decide each caller's rights. By default the host requires a function key; with TRAINYARD_AUTH=entra, roles decide.

Each operation declares its role (shared/kernel/operation.py). A role includes the rights of the roles before it.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import azure.functions as func

from shared.kernel.errors import BadInput, BadSetting
from shared.kernel.index_settings import app_service_signs_in, asks_entra
from shared.kernel.operation import ANYONE, CODER, CONTRIBUTOR, ROLES
from shared.kernel.person import Person

if TYPE_CHECKING:
    from shared.kernel.guest import Guest
    from shared.kernel.reply import Caller

CALLER = "x-trainyard-caller"  # percent-encoded
LOOPBACK = ("localhost", "127.0.0.1", "::1")
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
    """The caller is unknown (401), may not do this (403), or sent a body of unknown length (411)."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def by_roles() -> bool:
    return asks_entra(os.environ)


def level() -> func.AuthLevel:
    """Return the host's requirement before calling a function. With Entra ID no key is required: App Service has
    checked the caller.
    """
    return func.AuthLevel.ANONYMOUS if by_roles() else func.AuthLevel.FUNCTION


def admit(req: func.HttpRequest, role: str) -> None:
    """Raise Denied unless the caller has the role. Without roles the host has already checked the key."""
    if role != ANYONE and by_roles():
        check(role, req.method, req.headers, os.environ)


def check(role: str, method: str, headers: Mapping[str, str], env: Mapping[str, str]) -> None:
    """Raise Denied unless the headers name a caller with the role who may use this method.

    The headers are trustworthy only while App Service authentication is on, because it then removes the caller's own
    copies of them. WEBSITE_AUTH_ENABLED shows that it is on. Without it anyone could claim any identity, so no caller
    is admitted.
    """
    if not app_service_signs_in(env):
        raise BadSetting(
            "TRAINYARD_AUTH is entra, but App Service authentication is off (WEBSITE_AUTH_ENABLED). Turn it on."
        )
    if method not in ("GET", "HEAD"):
        _check_site(headers)
    need(headers, role)


def _check_site(headers: Mapping[str, str]) -> None:
    """Raise Denied for a request from a page of another site, to which the browser adds the cookie of the signed-in
    user.

    Browsers name the origin of each request in Sec-Fetch-Site. Programs have no such cookie and send no such header.
    """
    if _header(headers, "sec-fetch-site") not in ("", "same-origin", "none"):
        raise Denied(403, "A page of another site may not change anything here.")


def _header(headers: Mapping[str, str], lower_name: str) -> str:
    return next((value for name, value in headers.items() if name.lower() == lower_name), "")


def admit_code(req: func.HttpRequest) -> None:
    """Raise Denied unless the caller may run their own code. Without roles, only the routes file decides that."""
    if by_roles():
        need(req.headers, CODER)


def need(headers: Mapping[str, str], role: str) -> None:
    """Raise Denied unless the headers name a caller with this role, or with a role that includes this role."""
    if not _roles(headers) & set(ROLES[ROLES.index(role) :]):
        raise Denied(
            403, f"This needs the role {role}. An administrator assigns it in the app's enterprise application."
        )


def who(req: func.HttpRequest) -> Person:
    """Return the caller, as records store a person.

    With Entra ID the name is the sign-in name, else the object id; the object id stays when the name changes. With
    keys, every key holder may do everything, so the name is self-reported in the header CALLER.
    """
    if by_roles():
        claims = _claims(req.headers)
        return Person(_first(claims, _NAME_CLAIMS), _first(claims, _ID_CLAIMS))
    from shared.kernel.parsing import one_line

    return Person(one_line((req.headers.get(CALLER) or "")[:_NAME_LIMIT]))


def caller(req: func.HttpRequest) -> Caller:
    """Return the caller, and whether the caller may do more than read."""
    from shared.kernel.reply import Caller

    role = _highest(_roles(req.headers)) if by_roles() else CODER
    return Caller("entra" if by_roles() else "keys", who(req), role in (CONTRIBUTOR, CODER), role)


def caller_of_guest(guest: Guest) -> Caller:
    """Return a guest as a caller without a role. The guest's own rules state its rights."""
    from shared.kernel.reply import Caller

    return Caller("grant", guest.person, False)


def admit_code_of_guest(guest: Guest) -> None:
    """Raise Denied unless the guest may run its own code."""
    if not guest.may_run_code:
        raise Denied(403, "This token may not run code of its own. Its creator can allow `run-code`.")


def _highest(roles: set[str]) -> str:
    return next((role for role in reversed(ROLES) if role in roles), "")


def token(req: func.HttpRequest) -> str:
    """Return the bearer token of the request. Raises Denied for a request without one."""
    scheme, _, text = (req.headers.get("authorization") or "").partition(" ")
    if scheme.lower() != "bearer" or not text.strip():
        raise Denied(401, "Send the token of a grant: Authorization: Bearer tg_...")
    return text.strip()


def own_headers(req: func.HttpRequest) -> dict[str, str]:
    """Return the headers, with names in lower case. Raises Denied for a page of another site.

    A page can make a browser on the same machine or network call this app under a name of its own (DNS rebinding). A
    browser names the page's site in Origin; a program sends none.
    """
    headers = {name.lower(): value for name, value in req.headers.items()}
    own = (*LOOPBACK, os.environ.get("WEBSITE_HOSTNAME", "").partition(":")[0])
    if (origin := headers.get("origin")) and urlsplit(origin).hostname not in own:
        raise Denied(403, "A page of another site may not call this.")
    return headers


def _first(claims: list[tuple[str, str]], kinds: tuple[str, ...]) -> str:
    return next((value for kind in kinds for claim, value in claims if claim == kind), "")[:_NAME_LIMIT]


def _roles(headers: Mapping[str, str]) -> set[str]:
    return {value for kind, value in _claims(headers) if kind in _ROLE_CLAIMS}


def _claims(headers: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the claims of X-MS-CLIENT-PRINCIPAL (base64 of JSON with claims of `typ` and `val`) as pairs."""
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

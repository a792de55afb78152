"""The strings that shared access signatures sign.

https://learn.microsoft.com/rest/api/storageservices/create-account-sas
https://learn.microsoft.com/rest/api/storageservices/create-service-sas
https://learn.microsoft.com/rest/api/storageservices/create-user-delegation-sas
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from ipaddress import IPv4Address
from urllib.parse import unquote

from emulators.storage.common.calls import Call
from emulators.storage.common.errors import mismatch, unauthenticated
from emulators.storage.common.rights import Terms

WITH_SCOPE = "2020-12-06"  # from this version on the encryption scope is signed, too
DELEGATED = ("skoid", "sktid", "skt", "ske", "sks", "skv")
AUTHORIZED = ("saoid", "suoid", "scid")
DELEGATED_USER = ("skdutid", "sduoid")  # of later versions; empty if the signature is not for one user


@dataclass(frozen=True)
class Delegation:
    """The terms of a user delegation key: its principal, its period and its service."""

    principal: str
    tenant: str
    start: str
    expiry: str
    service: str
    version: str
    user_tenant: str = ""

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Delegation:
        return cls(*(query.get(name, "") for name in (*DELEGATED, "skdutid")))

    @property
    def signed(self) -> list[str]:
        return [self.principal, self.tenant, self.start, self.expiry, self.service, self.version, self.user_tenant]


def terms(call: Call) -> Terms:
    """Return the terms in the signature itself. A stored access policy may have the other terms."""
    first, last = (
        (call.query[partition], call.query.get(row)) if partition in call.query else None
        for partition, row in (("spk", "srk"), ("epk", "erk"))
    )
    return Terms(call.text("sp"), call.query.get("st"), call.query.get("se"), first, last)


def account_text(call: Call, name: str) -> str:
    names = ["sp", "ss", "srt", "st", "se", "sip", "spr", "sv"]
    names += ["ses"] if call.text("sv") >= WITH_SCOPE else []
    return "\n".join([name, *(call.text(each) for each in names)]) + "\n"


def service_texts(call: Call, resource: str, middle: list[str], tail: list[str]) -> list[str]:
    """Return the strings that a SAS of a container, blob, queue or table may sign. With a user delegation key there
    are several, because each version signs more fields than the one before."""
    head = [*texts(call, "sp", "st", "se"), resource]
    if "skoid" not in call.query:
        return ["\n".join([*head, call.text("si"), *middle, *tail])]
    own = texts(call, *DELEGATED)
    user, later = texts(call, *DELEGATED_USER), [*own, *texts(call, *AUTHORIZED)]
    bound = [_signed_headers(call), _signed_parameters(call)]
    choices = [([*later, *user], bound), ([*later, *user], []), (later, []), ([*own, *user], []), (own, [])]
    return ["\n".join([*head, *lines, *middle, *more, *tail]) for lines, more in choices]


def _signed_headers(call: Call) -> str:
    """Return the request's values of the headers in `srh`, because a signature may require certain header values."""
    names = [unquote(name) for name in call.text("srh").split(",") if name]
    return "".join(f"{name}:{call.headers.get(name, '')}\n" for name in names)


def _signed_parameters(call: Call) -> str:
    names = [unquote(name) for name in call.text("srq").split(",") if name]
    return "".join(f"\n{name}:{call.text(name)}" for name in names)


def check_address(call: Call) -> None:
    """Raise StorageError, 403, if the client's address is not among the addresses of the signature (`sip`)."""
    if not (allowed := call.text("sip")):
        return
    first, _, last = allowed.partition("-")
    try:
        least, most = (int(IPv4Address(text)) for text in (first, last or first))
        found = int(IPv4Address(call.client))
    except ValueError:
        raise unauthenticated(f"sip is {allowed!r}; it is an IPv4 address, or two with - between them.") from None
    if not least <= found <= most:
        raise mismatch("SourceIP", f"source IP {call.client}")


def completed(own: Terms, kept: Terms) -> Terms:
    """Return the terms of a signature, completed from its stored access policy. Raises StorageError, 403, if both
    set the same term."""
    both = [name for name in ("permissions", "start", "end") if getattr(own, name) and getattr(kept, name)]
    if both:
        sentence = "Access policy fields can be associated with signature or SAS identifier but not both"
        raise unauthenticated(f"{sentence}: {', '.join(both)}.")
    return replace(
        own,
        permissions=own.permissions or kept.permissions,
        start=own.start or kept.start,
        end=own.end or kept.end,
    )


def texts(call: Call, *names: str) -> list[str]:
    return [call.text(name) for name in names]

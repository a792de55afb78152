"""What shared access signatures sign.

https://learn.microsoft.com/rest/api/storageservices/create-account-sas
https://learn.microsoft.com/rest/api/storageservices/create-service-sas
https://learn.microsoft.com/rest/api/storageservices/create-user-delegation-sas
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from emulators.storage.common.calls import Call
from emulators.storage.common.rights import Terms

WITH_SCOPE = "2020-12-06"  # from here on the encryption scope is signed too
DELEGATED = ("skoid", "sktid", "skt", "ske", "sks", "skv")
DELEGATED_USER = ("skdutid", "sduoid")  # of later versions; empty if the signature is for whoever has it


@dataclass(frozen=True)
class Delegation:
    """Who may sign with a user delegation key, from when to when, for which service."""

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
    """What the signature itself says, which may leave some to a stored access policy."""
    first, last = (
        (call.query[partition], call.query.get(row)) if partition in call.query else None
        for partition, row in (("spk", "srk"), ("epk", "erk"))
    )
    return Terms(call.text("sp"), call.query.get("st"), call.query.get("se"), first, last)


def account_text(call: Call, name: str) -> str:
    names = ["sp", "ss", "srt", "st", "se", "sip", "spr", "sv"]
    names += ["ses"] if call.text("sv") >= WITH_SCOPE else []
    return "\n".join([name, *(call.text(each) for each in names)]) + "\n"


def service_texts(call: Call, service: str, account: str, resource: str) -> list[str]:
    """Of a queue or table. With a user delegation key there is one for each version that signs otherwise."""
    head = texts(call, "sp", "st", "se")
    head.append(f"/{service}/{account}/{resource}")
    tail = texts(call, "sip", "spr", "sv")
    if service == "table":
        tail += texts(call, "spk", "srk", "epk", "erk")
    if "skoid" not in call.query:
        return ["\n".join([*head, call.text("si"), *tail])]
    own = [texts(call, *DELEGATED, *DELEGATED_USER), texts(call, *DELEGATED)]
    return ["\n".join([*head, *lines, *tail]) for lines in own]


def texts(call: Call, *names: str) -> list[str]:
    return [call.text(name) for name in names]

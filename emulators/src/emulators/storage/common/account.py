"""Authorization of storage requests: by SharedKey, SharedKeyLite, a shared access signature (SAS), or a token.

https://learn.microsoft.com/rest/api/storageservices/authorize-with-shared-key
"""

from __future__ import annotations

import base64
import binascii
import hmac
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from functools import cached_property

from emulators.storage.common import sas
from emulators.storage.common.calls import Call, moment
from emulators.storage.common.errors import StorageError, mismatch, unauthenticated
from emulators.storage.common.identities import Identities, no_tokens
from emulators.storage.common.rights import KEY_HOLDER, Right, Terms

SKEW_SECONDS = 15 * 60  # how far a request's date may be from ours, as in Azure
RANKS = {char: rank for rank, char in enumerate("!#$%&*.^_`|~+0123456789abcdefghijklmnopqrstuvwxyz")}
SIGNED_HEADERS = (
    "content-encoding",
    "content-language",
    "content-length",
    "content-md5",
    "content-type",
    "date",
    "if-modified-since",
    "if-match",
    "if-none-match",
    "if-unmodified-since",
    "range",
)


@dataclass(frozen=True)
class Account:
    """`policy` returns the stored access policy of a container, queue or table by both names, or None."""

    name: str
    key: str = field(repr=False)
    service: str  # blob, queue or table; a SAS has the first letter
    clock: Callable[[], float] = time.time
    identities: Identities | None = None
    policy: Callable[[str, str], Terms | None] = lambda _name, _id: None

    @cached_property
    def _secret(self) -> bytes:
        try:
            return base64.b64decode(self.key, validate=True)
        except binascii.Error:
            raise ValueError("the account's key is not base64") from None

    def admit(self, call: Call, right: Right) -> Terms:
        """Authorize a request, and return the terms of its signature.

        Raises StorageError, 403 or 401, for a request that is not allowed.
        """
        if "sig" in call.query:
            return self._admit_sas(call, right)
        scheme, _, credentials = self._authorization(call).partition(" ")
        if scheme == "Bearer":
            self._identities.admit(credentials, self.service, right)
        else:
            self._admit_key(call, scheme, credentials)
        return KEY_HOLDER

    def admit_any(self, call: Call) -> None:
        """Authorize a request with any valid signature or token, whatever it allows. Raises StorageError for other
        requests."""
        if "sig" in call.query:
            self._checked_sas(call)
        elif self._authorization(call).startswith("Bearer "):
            self._identities.principal(self._authorization(call).removeprefix("Bearer "))
        else:
            self.admit(call, Right("s", ("r",)))

    def admit_identity(self, call: Call, right: Right) -> str:
        """Return the object id in a request's token, if its roles allow this. A key or signature is refused."""
        if "sig" in call.query or not self._authorization(call).startswith("Bearer "):
            raise unauthenticated("Only authentication scheme Bearer is supported")
        return self._identities.admit(self._authorization(call).removeprefix("Bearer "), self.service, right)

    def sign(self, text: str, secret: bytes | None = None) -> str:
        # The original bytes, also of a header that is not UTF-8.
        signed = text.encode(errors="surrogateescape")
        return base64.b64encode(hmac.digest(self._secret if secret is None else secret, signed, "sha256")).decode()

    def delegation_key(self, grant: sas.Delegation) -> str:
        """Return the user delegation key for these terms. The key is derived from the terms, so no key has to be
        stored."""
        return self.sign("\n".join(["user delegation key", *grant.signed]))

    def _authorization(self, call: Call) -> str:
        if call.account != self.name:
            raise StorageError(404, "ResourceNotFound", f"There is no account {call.account!r}; it is {self.name!r}.")
        text = call.headers.get("Authorization")
        if not text:
            raise StorageError(401, "NoAuthenticationInformation", "The request has no Authorization and no signature.")
        return text

    @property
    def _identities(self) -> Identities:
        if self.identities is None:
            raise no_tokens()
        return self.identities

    # SharedKey

    def _admit_key(self, call: Call, scheme: str, credentials: str) -> None:
        name, _, signature = credentials.partition(":")
        if scheme not in ("SharedKey", "SharedKeyLite") or name != self.name:
            raise unauthenticated(f"The scheme is SharedKey or SharedKeyLite, and the account is {self.name}.")
        self._check_date(call)
        text = self._text_of_table(call, scheme) if self.service == "table" else self._text(call, scheme)
        if not hmac.compare_digest(self.sign(text).encode(), signature.encode(errors="replace")):
            raise unauthenticated(f"The MAC signature is not that of the account's key. String to sign: {text!r}.")

    def _check_date(self, call: Call) -> None:
        text = call.headers.get("x-ms-date") or call.headers.get("Date") or ""
        try:
            age = abs(self.clock() - parsedate_to_datetime(text).timestamp())
        except (ValueError, TypeError, OverflowError):
            raise unauthenticated(f"x-ms-date or Date is {text!r}; it must be a date as in RFC 1123.") from None
        if age > SKEW_SECONDS:
            raise unauthenticated(f"Request date header too old: {text!r}.")

    def _text(self, call: Call, scheme: str) -> str:
        """Return the text that a request to blobs or queues signs. With x-ms-date, the field of Date is empty, also if
        the request has a Date (Azure/Azurite#1385)."""
        names = SIGNED_HEADERS if scheme == "SharedKey" else ("content-md5", "content-type", "date")
        empty = "date" if "x-ms-date" in call.headers else ""
        values = [call.headers.get(name, "") if name != empty else "" for name in names]
        if scheme == "SharedKey" and values[2] == "0":
            values[2] = ""
        extra = ((key.lower(), value) for key, value in call.headers.items() if key.lower().startswith("x-ms-"))
        lines = [f"{key}:{value.strip()}" for key, value in sorted(extra, key=_order)]
        return "\n".join([call.method, *values, *lines, self._resource(call, scheme == "SharedKey")])

    def _text_of_table(self, call: Call, scheme: str) -> str:
        headers = call.headers
        date = headers.get("x-ms-date") or headers.get("Date", "")
        resource = self._resource(call, whole_query=False)
        if scheme == "SharedKeyLite":
            return f"{date}\n{resource}"
        return "\n".join([call.method, headers.get("Content-MD5", ""), headers.get("Content-Type", ""), date, resource])

    def _resource(self, call: Call, whole_query: bool) -> str:
        path = f"/{self.name}{call.signed_path}"
        if whole_query:
            parameters = sorted((key.lower(), value) for key, value in call.query.items())
            return path + "".join(f"\n{key}:{value}" for key, value in parameters)
        return f"{path}?comp={call.query['comp']}" if "comp" in call.query else path

    # Shared access signatures

    def _admit_sas(self, call: Call, right: Right) -> Terms:
        query, terms = call.query, self._checked_sas(call)
        if "ss" in query:
            if self.service[0] not in query["ss"]:
                raise mismatch("Service", "service")
            if right.kind not in query.get("srt", ""):
                raise mismatch("ResourceType", "resource type")
        elif not self._is_for(call, right):
            raise StorageError(403, "AuthorizationFailure", "This signature is for another resource.")
        if not any(set(letters) <= set(terms.permissions) for letters in right.any_of):
            raise mismatch("Permission", "permission")
        if "skoid" in query:  # a delegating identity can grant no more than its own roles allow
            self._identities.check(query["skoid"], self.service, right)
        return terms

    def _checked_sas(self, call: Call) -> Terms:
        query = call.query
        if call.account != self.name:
            raise StorageError(404, "ResourceNotFound", f"There is no account {call.account!r}; it is {self.name!r}.")
        texts = [sas.account_text(call, self.name)] if "ss" in query else self._texts_of_service_sas(call)
        secret = self._delegated(call) if "skoid" in query else None
        given = query["sig"].encode(errors="replace")
        if not any(hmac.compare_digest(self.sign(text, secret).encode(), given) for text in texts):
            raise unauthenticated(f"Signature did not match. String to sign used was {texts[0]!r}.")
        terms = self._terms(call)
        self._check_time(terms.start, terms.end)
        if ("https" if call.secure else "http") not in query.get("spr", "https,http").split(","):
            raise mismatch("Protocol", "protocol")
        sas.check_address(call)
        return terms

    def _delegated(self, call: Call) -> bytes:
        """Return the user delegation key that signed the request. Raises StorageError, 403, for an expired key."""
        grant = sas.Delegation.of(call.query)
        self._check_time(grant.start, grant.expiry)
        if user := call.text("sduoid"):
            token = call.headers.get("Authorization", "").removeprefix("Bearer ")
            if self._identities.principal(token) != user:
                raise unauthenticated("The token is not that of the user whom the signature is for (sduoid).")
        return base64.b64decode(self.delegation_key(grant))

    def _texts_of_service_sas(self, call: Call) -> list[str]:
        resource = f"/{self.service}/{self.name}/{self._resource_of_sas(call)}"
        ranges = sas.texts(call, "spk", "srk", "epk", "erk") if self.service == "table" else []
        return sas.service_texts(call, resource, sas.texts(call, "sip", "spr", "sv"), ranges)

    def _terms(self, call: Call) -> Terms:
        own = sas.terms(call)
        if not call.text("si") or "ss" in call.query:
            return own
        kept = self.policy(self._resource_of_sas(call), call.text("si"))
        if kept is None:
            raise StorageError(403, "AuthenticationFailed", "There is no stored access policy of this name (si).")
        return sas.completed(own, kept)

    def _resource_of_sas(self, call: Call) -> str:
        """Return the queue or table of a service SAS: the name in the SAS for tables, in the path for queues."""
        return call.text("tn").lower() if self.service == "table" else call.resource.partition("/")[0]

    def _is_for(self, call: Call, right: Right) -> bool:
        """Return whether a service SAS is for the resource of the request."""
        return bool(right.name) and right.name.lower() == self._resource_of_sas(call)

    def _check_time(self, start: str | None, end: str | None) -> None:
        now = self.clock()
        if end is None or now > _seconds(end):
            raise unauthenticated(f"Signature not valid in the specified time frame: it ends at {end}.")
        if start and now < _seconds(start):
            raise unauthenticated(f"Signature not valid in the specified time frame: it starts at {start}.")


def _order(header: tuple[str, str]) -> tuple[list[int], list[bool]]:
    """Return the sort key of a header, in the order of Azure and its SDKs: hyphens count only between names that
    are otherwise equal."""
    name = header[0]
    return [RANKS[char] for char in name if char in RANKS], [char not in RANKS for char in name]


def _seconds(text: str) -> float:
    try:
        return moment(text).timestamp()
    except ValueError:
        raise unauthenticated(f"{text!r} is not a time as in ISO 8601.") from None

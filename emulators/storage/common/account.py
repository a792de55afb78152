"""Who may do what with the storage account: by SharedKey, SharedKeyLite, a shared access signature (SAS), or a token.

https://learn.microsoft.com/rest/api/storageservices/authorize-with-shared-key
https://learn.microsoft.com/rest/api/storageservices/create-account-sas
https://learn.microsoft.com/rest/api/storageservices/create-service-sas
"""

from __future__ import annotations

import base64
import binascii
import hmac
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cached_property

from emulators.storage.common.calls import Call
from emulators.storage.common.errors import StorageError, mismatch, unauthenticated
from emulators.storage.common.identities import Identities, actions_of, no_tokens

ALL = "racwdxltmeop"  # what the account's key allows, in the letters of a SAS
SKEW_SECONDS = 15 * 60  # how far a request's date may be from ours, as in Azure
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
class Right:
    """What a request needs of a SAS: a resource type (s, c, o) and any of some sets of permissions.

    `name` is the queue or table, empty for the service itself: a service SAS is for one of them alone.
    """

    kind: str
    any_of: tuple[str, ...]
    name: str = ""


@dataclass(frozen=True)
class Terms:
    """What a SAS allows, and from when to when, in ISO 8601."""

    permissions: str
    start: str | None
    end: str | None


@dataclass(frozen=True)
class Account:
    name: str
    key: str = field(repr=False)
    service: str  # blob, queue or table: the first letter is that in a SAS
    clock: Callable[[], float] = time.time
    identities: Identities | None = None

    @cached_property
    def _secret(self) -> bytes:
        try:
            return base64.b64decode(self.key, validate=True)
        except binascii.Error:
            raise ValueError("the account's key is not base64") from None

    def admit(self, call: Call, right: Right) -> str:
        """Return, with the permissions that it has, for a request that its signature allows.

        Raises StorageError, 403 or 401, for any other.
        """
        if call.account != self.name:
            raise StorageError(404, "ResourceNotFound", f"There is no account {call.account!r}; it is {self.name!r}.")
        if "sig" in call.query:
            return self._admit_sas(call, right)
        if authorization := call.headers.get("Authorization"):
            scheme, _, token = authorization.partition(" ")
            if scheme == "Bearer":
                self._admit_token(token, right)
            else:
                self._admit_key(call, authorization)
        else:
            raise StorageError(401, "NoAuthenticationInformation", "The request has no Authorization and no signature.")
        return ALL

    def sign(self, text: str) -> str:
        # As the bytes were sent, also those of a header that is no UTF-8.
        signed = text.encode(errors="surrogateescape")
        return base64.b64encode(hmac.digest(self._secret, signed, "sha256")).decode()

    def _is_signature(self, given: str, text: str) -> bool:
        return hmac.compare_digest(self.sign(text).encode(), given.encode(errors="replace"))

    def _admit_token(self, token: str, right: Right) -> None:
        if self.identities is None:
            raise no_tokens()
        self.identities.admit(token, actions_of(right.kind, right.any_of[0]), right.name)

    def _admit_key(self, call: Call, authorization: str) -> None:
        scheme, _, credentials = authorization.partition(" ")
        name, _, signature = credentials.partition(":")
        if scheme not in ("SharedKey", "SharedKeyLite") or name != self.name:
            raise unauthenticated(f"The scheme is SharedKey or SharedKeyLite, and the account is {self.name}.")
        self._check_date(call)
        text = self._text_of_table(call, scheme) if self.service == "table" else self._text(call, scheme)
        if not self._is_signature(signature, text):
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
        """What a request to queues signs."""
        names = SIGNED_HEADERS if scheme == "SharedKey" else ("content-md5", "content-type", "date")
        values = [call.headers.get(name, "") for name in names]
        if scheme == "SharedKey" and values[2] == "0":
            values[2] = ""
        extra = sorted((k.lower(), v) for k, v in call.headers.items() if k.lower().startswith("x-ms-"))
        lines = [call.method, *values, *(f"{key}:{value.strip()}" for key, value in extra)]
        return "\n".join(lines) + "\n" + self._resource(call, scheme == "SharedKey")

    def _text_of_table(self, call: Call, scheme: str) -> str:
        headers = call.headers
        date = headers.get("x-ms-date") or headers.get("Date", "")
        resource = self._resource(call, whole_query=False)
        if scheme == "SharedKeyLite":
            return f"{date}\n{resource}"
        return "\n".join([call.method, headers.get("Content-MD5", ""), headers.get("Content-Type", ""), date, resource])

    def _resource(self, call: Call, whole_query: bool) -> str:
        path = f"/{self.name}{call.path}"
        if whole_query:
            parameters = sorted((key.lower(), value) for key, value in call.query.items())
            return path + "".join(f"\n{key}:{value}" for key, value in parameters)
        return f"{path}?comp={call.query['comp']}" if "comp" in call.query else path

    def admit_any(self, call: Call) -> None:
        """Return for every valid signature, whatever it allows."""
        if "sig" in call.query:
            self._checked_sas(call)
        else:
            self.admit(call, Right("s", ("r",)))

    def _checked_sas(self, call: Call) -> Terms:
        query = call.query
        text = self._text_of_account_sas(call) if "ss" in query else self._text_of_service_sas(call)
        if not self._is_signature(query["sig"], text):
            raise unauthenticated(f"Signature did not match. String to sign used was {text!r}.")
        terms = self._terms(call)
        self._check_time(terms.start, terms.end)
        if ("https" if call.secure else "http") not in query.get("spr", "https,http").split(","):
            raise mismatch("Protocol", "protocol")
        return terms

    def _admit_sas(self, call: Call, right: Right) -> str:
        query, terms = call.query, self._checked_sas(call)
        if "ss" in query:
            if self.service[0] not in query["ss"]:
                raise mismatch("Service", "service")
            if right.kind not in query.get("srt", ""):
                raise mismatch("ResourceType", "resource type")
        elif not self._is_for(call, right):
            raise StorageError(403, "AuthorizationFailure", "This signature is for another resource.")
        if not any(set(wanted) <= set(terms.permissions) for wanted in right.any_of):
            raise mismatch("Permission", "permission")
        return terms.permissions

    def _terms(self, call: Call) -> Terms:
        return Terms(call.text("sp"), call.query.get("st"), call.query.get("se"))

    def _is_for(self, call: Call, right: Right) -> bool:
        """Whether a service SAS is for what the request names."""
        return bool(right.name) and right.name.lower() == _named(call, self.service)

    def _text_of_account_sas(self, call: Call) -> str:
        names = ["sp", "ss", "srt", "st", "se", "sip", "spr", "sv"]
        names += ["ses"] if call.text("sv") >= "2020-12-06" else []
        return "\n".join([self.name, *(call.text(name) for name in names)]) + "\n"

    def _text_of_service_sas(self, call: Call) -> str:
        resource = f"/{self.service}/{self.name}/{_named(call, self.service)}"
        lines = [call.text("sp"), call.text("st"), call.text("se"), resource]
        lines += [call.text(name) for name in ("si", "sip", "spr", "sv")]
        if call.text("si"):
            raise unauthenticated("This emulator keeps no stored access policies, so a SAS can't name one (si).")
        if self.service == "table":
            if any(call.text(name) for name in ("spk", "srk", "epk", "erk")):
                raise unauthenticated("This emulator knows no SAS for a range of keys (spk, srk, epk, erk).")
            lines += [""] * 4
        return "\n".join(lines)

    def _check_time(self, start: str | None, end: str | None) -> None:
        now = self.clock()
        if end is None or now > _seconds(end):
            raise unauthenticated(f"Signature not valid in the specified time frame: it ends at {end}.")
        if start and now < _seconds(start):
            raise unauthenticated(f"Signature not valid in the specified time frame: it starts at {start}.")


def _named(call: Call, service: str) -> str:
    """The queue or table of a service SAS: the name in the SAS for tables, in the path for queues."""
    return call.text("tn").lower() if service == "table" else call.resource.partition("/")[0]


def _seconds(text: str) -> float:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise unauthenticated(f"{text!r} is not a time as in ISO 8601.") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()

"""The possible faults of a table, and the meanings of the service's answers.

TableError
├── Conflict      the row exists already, or has another version than the one to replace
├── Missing       the row to be replaced is gone
├── TooBig        the value does not fit into a row; mostly found before anything is sent
├── Denied        the credential was refused; not retried
└── Unreachable   no usable answer until the deadline; the message has the last answer. A write may have happened
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qs, urlsplit

from azure.core.exceptions import AzureError, ClientAuthenticationError, DecodeError, HttpResponseError

TRANSIENT = {408, 429, 500, 502, 503, 504}


class TableError(RuntimeError):
    """The base class of the tree above. `retried`: an earlier attempt of the same call may have succeeded."""

    retried = False


class Conflict(TableError):
    """The row exists (insert), or has another version (replace)."""


class Missing(TableError):
    """The row to be replaced does not exist."""


class TooBig(TableError):
    """The value does not fit into a row."""


class Denied(TableError):
    """The credential was refused (401, 403), or is missing."""


class Unreachable(TableError):
    """Until the deadline, the service gave no response, or only temporary errors."""


class Passing(TableError):
    """A temporary error, and the seconds that the service asks to wait before the next attempt."""

    after = 0.0


def code_of(error: HttpResponseError) -> str:
    """Return the service's error code. Transactions have the code in the body only."""
    response: Any = error.response
    if response is None:
        return ""
    if code := response.headers.get("x-ms-error-code"):
        return str(code)
    with suppress(AzureError, ValueError, RuntimeError):  # a body that is incomplete, not text, or unread
        if found := re.search(r'"code"\s*:\s*"(\w+)"', response.text()):
            return found[1]
    return ""


def translated(error: HttpResponseError) -> TableError:
    """Return the error of this module for a response of the service."""
    status, code = error.status_code, code_of(error)
    message = without_secrets(str(error.message)).partition(chr(10))[0]
    if status is None:  # no request was sent: there is no identity, or the identity service refused it
        return Denied(f"no identity for the table: {message} (on a laptop: az login; on Azure: a managed identity)")
    text = f"{status} {code or error.reason}: {message}"
    if isinstance(error, ClientAuthenticationError) or status in (401, 403):
        return Denied(f"{text} ({_what_is_needed(error)})")
    if status in TRANSIENT or code == "TableBeingDeleted" or isinstance(error, DecodeError):
        passing = Passing(text)
        passing.after = _seconds(error)
        return passing
    if status == 413 or code in ("EntityTooLarge", "RequestBodyTooLarge", "PropertyValueTooLarge"):
        return TooBig(text)
    if code in ("ResourceNotFound", "EntityNotFound"):  # any other 404 is not from a table service
        return Missing(text)
    return Conflict(text) if status in (409, 412) else TableError(text)


def _what_is_needed(error: HttpResponseError) -> str:
    response: Any = error.response
    signed = parse_qs(urlsplit(response.request.url).query) if response is not None else {}
    if "sig" in signed:
        return f"the signature holds until {signed.get('se', ['?'])[0]}; start again with a new one"
    return "an identity needs the role Storage Table Data Contributor on the account"


def _seconds(error: HttpResponseError) -> float:
    """Return the seconds of Retry-After. Azure sends seconds; the header's other form, a date, is ignored."""
    response: Any = error.response
    value = "" if response is None else response.headers.get("Retry-After", "")
    return float(value) if value.isdecimal() else 0.0


def without_secrets(text: str) -> str:
    """Replace the account key of a connection string and the signature of a SAS."""
    return re.sub(r"(?i)\b(sig|AccountKey)=[^&;\s'\")]+", r"\1=***", text)

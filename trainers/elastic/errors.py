"""What can go wrong with a table, and which answers of the service mean what.

TableError
├── Conflict      the row is there already, or is not the version that was to be replaced
├── Missing       the row to be replaced is gone
├── TooBig        the value does not fit into a row; mostly found before anything is sent
├── Denied        the credential was refused; not tried again
└── Unreachable   no answer but these until the deadline; says the last one. A write may have happened or not
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qs, urlsplit

from azure.core.exceptions import AzureError, ClientAuthenticationError, DecodeError, HttpResponseError

TRANSIENT = {408, 429, 500, 502, 503, 504}


class TableError(RuntimeError):
    """The root of the tree above. `retried`: an earlier try of the same call may have worked."""

    retried = False


class Conflict(TableError):
    """The row is there already (insert), or is another version (replace)."""


class Missing(TableError):
    """The row to be replaced is gone."""


class TooBig(TableError):
    """The value does not fit into a row."""


class Denied(TableError):
    """The credential was refused (401, 403), or there is none."""


class Unreachable(TableError):
    """The service gave no answer, or none but errors that pass, until the deadline."""


class Passing(TableError):
    """An error that may be gone at the next try, and the seconds that the service asks to wait for it."""

    after = 0.0


def code_of(error: HttpResponseError) -> str:
    """The service's own name for an error. Transactions have it in the body only."""
    response: Any = error.response
    if response is None:
        return ""
    if code := response.headers.get("x-ms-error-code"):
        return str(code)
    with suppress(AzureError, ValueError, RuntimeError):  # a body that was cut, is no text, or was not read
        if found := re.search(r'"code"\s*:\s*"(\w+)"', response.text()):
            return found[1]
    return ""


def translated(error: HttpResponseError) -> TableError:
    """Give the error of ours that an answer of the service means."""
    status, code = error.status_code, code_of(error)
    message = without_secrets(str(error.message)).partition(chr(10))[0]
    if status is None:  # nothing was asked: there is no identity, or its own service refused it
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
    """What Retry-After asks for. Azure sends seconds; the other form of the header, a date, is not read."""
    response: Any = error.response
    value = "" if response is None else response.headers.get("Retry-After", "")
    return float(value) if value.isdecimal() else 0.0


def without_secrets(text: str) -> str:
    """Blank the account key of a connection string and the signature of a SAS."""
    return re.sub(r"(?i)\b(sig|AccountKey)=[^&;\s'\")]+", r"\1=***", text)

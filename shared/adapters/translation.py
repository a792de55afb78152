"""Translate Azure's errors to Trainyard's. A message names the attempt and the service's code, but no URL or
signature.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from azure.core.exceptions import AzureError, HttpResponseError

from shared.kernel.errors import BadInput, Changed, NoAnswer, NotFound, TrainyardError, Unavailable

# The statuses that a repeated call would get again. Every other failure is temporary: no answer (a time-out, a reset
# connection), throttling (408, 429), server errors, and refusals (401, 403), because a role assignment takes minutes to
# reach every server.
_LASTING: dict[int, type[TrainyardError]] = {400: BadInput, 404: NotFound, 409: Changed, 412: Changed, 413: BadInput}
_MOST_SAID = 1000  # characters of a service's own message
_FACTS = re.compile(r"\n\s*(?:RequestId|Time|ErrorCode|Code|Message|Content|Exception Details) ?:.*", re.DOTALL)
_SECRETS = re.compile(r"(?i)\b(sig|AccountKey|SharedAccessKey|code)=[^&;\s\"']+|Bearer\s+\S+|[?&]s[a-z]{1,3}=\S+")


@contextmanager
def translated(what: str, unanswered: str = "") -> Iterator[None]:
    """Raise the errors of the block as Trainyard's errors. Each message begins with `what`: "could not list
    drops/digits". If no answer came, the message begins with `unanswered`, if that is given.

    400 and 413 become BadInput, 404 NotFound, 409 and 412 Changed. All other errors are temporary and become
    Unavailable.
    """
    try:
        yield
    except AzureError as exc:
        begin = what if status_of(exc) else unanswered or what
        raise error_of(exc)(f"{begin}: {reason_of(exc)}") from exc


def error_of(exc: AzureError) -> type[TrainyardError]:
    status = status_of(exc)
    return NoAnswer if status == 0 or status >= 500 else _LASTING.get(status, Unavailable)


def is_temporary(exc: AzureError) -> bool:
    """Return whether repeating the call may succeed."""
    return issubclass(error_of(exc), Unavailable)


def status_of(exc: AzureError) -> int:
    """Return the HTTP status; 0 without an answer."""
    return int(exc.status_code or 0) if isinstance(exc, HttpResponseError) else 0


def code_of(exc: AzureError) -> str:
    """Return the service's own code for the error, such as BlobNotFound, or ''."""
    code = getattr(exc, "error_code", None) or getattr(getattr(exc, "error", None), "code", None) or ""
    return str(getattr(code, "value", code))


def reason_of(exc: AzureError) -> str:
    """Return the service's code and message on one line, or the reason for a missing answer."""
    status, code = status_of(exc), code_of(exc)
    message = getattr(getattr(exc, "error", None), "message", None) or exc.message or type(exc).__name__
    words = without_secrets(" ".join(_FACTS.sub("", str(message).strip()).split()))
    return " ".join(part for part in (str(status or ""), code, words[:_MOST_SAID]) if part)


def without_secrets(text: str) -> str:
    return _SECRETS.sub("(hidden)", text)

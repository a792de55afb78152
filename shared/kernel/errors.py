"""The errors of Trainyard, drawn as a tree.

    TrainyardError
    |-- BadInput         the request can never succeed; the message says why; do not retry
    |   |-- BadMessage   an unreadable queue message or event
    |   |-- BadSetting   a wrong setting or routes file
    |   `-- Impossible   a readable request for something that does not or cannot exist
    |-- NotFound         no object has this name
    |-- Forbidden        the caller may not do this
    |-- Unknown          the request's token names no caller
    |-- Conflict         the current state does not allow the action; a later attempt may succeed
    |-- Changed          a row changed between read and write; read the row again
    `-- Unavailable      a service refused, or its circuit is open; the same call may succeed later
        `-- NoAnswer     the service did not answer, or answered with a server error

Only shared/adapters translates SDK errors to these classes.
"""

from __future__ import annotations


class TrainyardError(Exception):
    """Base of every error that Trainyard raises on purpose. `code` is stable; the message is for people."""

    code = "error"


class BadInput(TrainyardError):
    code = "bad_input"


class BadMessage(BadInput):
    code = "bad_message"


class BadSetting(BadInput):
    code = "bad_setting"


class Impossible(BadInput):
    """`code` names the problem. Each raise has its own code."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


class NotFound(TrainyardError):
    code = "not_found"


class Forbidden(TrainyardError):
    code = "forbidden"


class Unknown(TrainyardError):
    code = "unauthenticated"


class Conflict(TrainyardError):
    """`code` names the obstacle. Each raise has its own code."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


class Changed(TrainyardError):
    code = "changed"


class Unavailable(TrainyardError):
    code = "unavailable"


class NoAnswer(Unavailable):
    """Callers handle NoAnswer like Unavailable. A circuit counts it as a failure of the service."""

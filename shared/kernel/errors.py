"""What can go wrong, as the rest of the system sees it.

    TrainyardError
    |-- BadInput         the caller sent something that can never work; say what, don't try again
    |   |-- BadMessage   a queue message or event that can't be read
    |   |-- BadSetting   a setting or the routes file
    |   `-- Impossible   it can be read, but asks for what isn't there or can't be
    |-- NotFound         a name that isn't there
    |-- Conflict         it can't be done as things are now; another time it may
    |-- Changed          a row changed between read and write; read again
    `-- Unavailable      a service refused for now, or is left alone; the same call may work later
        `-- NoAnswer     it did not answer at all, or with a fault of its own

SDK errors are translated to these in shared/adapters and nowhere else.
"""

from __future__ import annotations


class TrainyardError(Exception):
    """Base of everything that Trainyard raises on purpose. `code` is stable; the message is for people."""

    code = "error"


class BadInput(TrainyardError):
    code = "bad_input"


class BadMessage(BadInput):
    code = "bad_message"


class BadSetting(BadInput):
    code = "bad_setting"


class Impossible(BadInput):
    """`code` says what is wrong: each raise has its own."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


class NotFound(TrainyardError):
    code = "not_found"


class Conflict(TrainyardError):
    """`code` says what is in the way: each raise has its own."""

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = code


class Changed(TrainyardError):
    code = "changed"


class Unavailable(TrainyardError):
    code = "unavailable"


class NoAnswer(Unavailable):
    """Its callers treat it as Unavailable; a circuit counts it."""

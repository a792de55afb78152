"""Errors in Azure Resource Manager's form.

ArmError          an answer that is an error: status, code, message
  BadRequest      400, the body or a name is invalid; the message has the value and the allowed values
  NotFound        404, the name does not exist
  Conflict        409, the name exists with other content
DataError         a job's code, inputs or outputs can't be moved; fails the job with its message
  Refused         one file can't be moved, so a retry is useless; other files still may be moved
"""

from __future__ import annotations

from collections.abc import Iterable


class ArmError(Exception):
    """Raised anywhere below a route. The server turns it into `{"error": {"code", "message"}}`."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message


class BadRequest(ArmError):
    def __init__(self, message: str, code: str = "UserError") -> None:
        super().__init__(400, code, message)


class NotFound(ArmError):
    def __init__(self, message: str, code: str = "ResourceNotFound") -> None:
        super().__init__(404, code, message)


class Conflict(ArmError):
    def __init__(self, message: str, code: str = "UserError") -> None:
        super().__init__(409, code, message)


class DataError(Exception):
    """A job's input or output is missing, damaged or out of reach."""


class Refused(DataError):
    """This file can't be moved; other files still may be."""


def nothing_at(name: str, where: object, is_file: bool) -> str:
    """Return the sentence for an input that names a place without a file, or without files."""
    advice = "is it a folder (uri_folder)?" if is_file else "is it a file (uri_file), or was it deleted?"
    return f"Input {name!r}: there is nothing at {where}; {advice}"


def among(names: Iterable[str]) -> str:
    """Return the allowed values for an error message."""
    return ", ".join(sorted(names)) or "none"

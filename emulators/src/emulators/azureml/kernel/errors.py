"""Errors in Azure Resource Manager's form.

ArmError          an answer that is an error: status, code, message
  BadRequest      400, the body or a name can't be accepted; the message says which value and what would do
  NotFound        404, nothing has that name
  Conflict        409, something with that name is there, with other content
DataError         a job's code, inputs or outputs can't be moved; fails the job with its message
  Refused         by the storage account, or by the file itself: trying again is of no use, others may still go
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


def among(names: Iterable[str]) -> str:
    """Return the allowed values for an error message."""
    return ", ".join(sorted(names)) or "none"

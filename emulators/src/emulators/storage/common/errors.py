"""The errors of a storage service, with Azure's status, code and message.

https://learn.microsoft.com/rest/api/storageservices/status-and-error-codes2
"""

from __future__ import annotations

from collections.abc import Mapping


class StorageError(Exception):
    """A refusal. `details` become elements of the answer beside code and message. `headers` are added to the
    answer."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        details: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(f"{status} {code}: {message}")
        self.status = status
        self.code = code
        self.message = message
        self.details = details or {}
        self.headers = headers or {}


def unauthenticated(reason: str) -> StorageError:
    """Return the error for an absent, wrong or expired signature. `reason` becomes AuthenticationErrorDetail."""
    message = (
        "Server failed to authenticate the request. Make sure the value of Authorization header is formed correctly "
        "including the signature."
    )
    return StorageError(403, "AuthenticationFailed", message, {"AuthenticationErrorDetail": reason})


def mismatch(what: str, sentence: str) -> StorageError:
    """Return the error for a valid shared access signature whose Service, ResourceType, Permission or Protocol does
    not allow the request."""
    code = f"Authorization{what}Mismatch"
    return StorageError(403, code, f"This request is not authorized to perform this operation using this {sentence}.")


def invalid_input(message: str) -> StorageError:
    return StorageError(400, "InvalidInput", message)


def bad_parameter(name: str, value: object, reason: str) -> StorageError:
    return StorageError(
        400,
        "InvalidQueryParameterValue",
        "Value for one of the query parameters specified in the request URI is invalid.",
        {"QueryParameterName": name, "QueryParameterValue": value, "Reason": reason},
    )


def out_of_range(name: str, value: object, least: int, most: int) -> StorageError:
    return StorageError(
        400,
        "OutOfRangeQueryParameterValue",
        "One of the query parameters specified in the request URI is outside the permissible range.",
        {
            "QueryParameterName": name,
            "QueryParameterValue": value,
            "MinimumAllowed": least,
            "MaximumAllowed": most,
        },
    )


def bad_xml(reason: str) -> StorageError:
    return StorageError(400, "InvalidXmlDocument", "XML specified is not syntactically valid.", {"Reason": reason})


def too_large(limit: int) -> StorageError:
    return StorageError(
        413,
        "RequestBodyTooLarge",
        "The request body is too large and exceeds the maximum permissible limit.",
        {"MaxLimit": limit},
    )


def invalid_header(name: str, value: object) -> StorageError:
    sentence = "The value for one of the HTTP headers is not in the correct format."
    return StorageError(400, "InvalidHeaderValue", sentence, {"HeaderName": name, "HeaderValue": str(value)[:200]})


def bad_length() -> StorageError:
    sentence = "The specified resource name length is not within the permissible limits."
    return StorageError(400, "OutOfRangeInput", sentence)


def missing_header(name: str) -> StorageError:
    return StorageError(
        400,
        "MissingRequiredHeader",
        "An HTTP header that's mandatory for this request is not specified.",
        {"HeaderName": name},
    )


def not_served(method: str, path: str) -> StorageError:
    return StorageError(405, "UnsupportedHttpVerb", f"This emulator doesn't serve {method} {path}.")

"""Send requests to a blob service that Microsoft's package can't send, and return the raw answers."""

from __future__ import annotations

import base64
import http.client
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.message import Message
from typing import Any
from urllib.parse import quote, urlsplit
from xml.etree import ElementTree as ET

import pytest
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import AccountSasPermissions, ResourceTypes, generate_account_sas

from emulators.storage.keys import ACCOUNT, KEY

CONTENT = b"0123456789"  # of the blob that most tests read
BLOCK_BLOB = {"x-ms-blob-type": "BlockBlob"}
VERSION = "2021-12-02"
SECONDS = 60.0  # for an answer


@dataclass(frozen=True)
class Reply:
    status: int
    headers: Message
    body: bytes

    @property
    def code(self) -> str:
        """The error code in the header. The code in the body must be equal."""
        code = str(self.headers["x-ms-error-code"])
        if self.body:
            assert ET.fromstring(self.body).findtext("Code") == code
        return code

    @property
    def refusal(self) -> tuple[int, str]:
        return self.status, self.code


@dataclass(frozen=True)
class Raw:
    url: str

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=SECONDS)

    def path(self, name: str, query: str = "", signed: bool = True) -> str:
        """Return the target of a request. `name` is the container and the blob as in an address."""
        parts = [part for part in (query, account_sas() if signed else "") if part]
        return f"{urlsplit(self.url).path}/{name}" + (f"?{'&'.join(parts)}" if parts else "")

    def ask(
        self, method: str, name: str, query: str = "", headers: Mapping[str, str] | None = None, body: Any = b"",
        signed: bool = True,
    ) -> Reply:  # fmt: skip
        """Send a request, with a SAS of the account unless `signed` is false."""
        connection = self.connect()
        try:
            given = {"x-ms-version": VERSION, **(headers or {})}
            connection.request(method, self.path(name, query, signed), body=body, headers=given)
            answer = connection.getresponse()
            return Reply(answer.status, answer.headers, answer.read())
        finally:
            connection.close()


def account_sas(permission: str = "rwdxylacuptf", types: str = "sco", hours: float = 1, **options: Any) -> str:
    return str(
        generate_account_sas(
            ACCOUNT,
            KEY,
            ResourceTypes.from_string(types),  # type: ignore[no-untyped-call]
            AccountSasPermissions.from_string(permission),  # type: ignore[no-untyped-call]
            datetime.now(UTC) + timedelta(hours=hours),
            **options,
        )
    )


def escaped(text: str) -> str:
    """Escape a value for a query."""
    return quote(text, safe="")


def commit_list(*entries: tuple[str, str]) -> bytes:
    """Return the body of Put Block List. Each entry is a state and a block id."""
    lines = "".join(f"<{state}>{base64.b64encode(name.encode()).decode()}</{state}>" for state, name in entries)
    return f'<?xml version="1.0" encoding="utf-8"?><BlockList>{lines}</BlockList>'.encode()


def refusal(call: Callable[..., Any], *arguments: Any, **options: Any) -> tuple[int | None, str]:
    """Return the status and code with which a call is refused."""
    with pytest.raises(HttpResponseError) as caught:
        call(*arguments, **options)
    code = getattr(caught.value, "error_code", None)
    return caught.value.status_code, str(getattr(code, "value", code))

"""Requests to a service of the storage account, straight through urllib3.

Not through the SDK: its pipeline costs several times what the request itself does, and a run makes about fifty of them
(decision 32). Errors are azure-core's own, so they are translated as all others are.
"""

from __future__ import annotations

import base64
import hmac
import json
import os
import re
import ssl
import threading
import time
from dataclasses import dataclass
from email.utils import formatdate
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from azure.core.exceptions import ClientAuthenticationError, HttpResponseError, ServiceRequestError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from azure.core.credentials import TokenCredential
    from urllib3 import PoolManager

CONNECTIONS = 32  # kept open; more are opened while they are needed
CONNECT_SECONDS, READ_SECONDS = 5.0, 30.0
TRIES_MORE, BACKOFF_SECONDS = 3, 0.5  # a message that fails comes again, so a call gives up after some seconds
PASSING = (408, 429, 500, 502, 503, 504)
_SCOPE = "https://storage.azure.com/.default"
_RENEW_SECONDS = 300.0  # before a token's end


class Signer(Protocol):
    def authorization(self, method: str, path: str, headers: Mapping[str, str]) -> str:
        """The header of a request to this path, the path as it is sent."""


@dataclass(frozen=True)
class KeySigner:
    """With the account's key: the scheme SharedKeyLite, which for tables is another one than for the other services.

    https://learn.microsoft.com/rest/api/storageservices/authorize-with-shared-key
    """

    account: str
    key: bytes
    tables: bool

    def authorization(self, method: str, path: str, headers: Mapping[str, str]) -> str:
        if self.tables:
            lines = [headers["x-ms-date"]]
        else:
            signed = sorted(f"{name}:{value}" for name, value in headers.items() if name.startswith("x-ms-"))
            lines = [method, "", headers.get("Content-Type", ""), "", *signed]
        text = "\n".join([*lines, f"/{self.account}{path}"])
        digest = hmac.digest(self.key, text.encode(), "sha256")
        return f"SharedKeyLite {self.account}:{base64.b64encode(digest).decode()}"


class TokenSigner:
    """With a token of the app's identity, which is kept until shortly before its end."""

    def __init__(self, credential: TokenCredential) -> None:
        self._credential = credential
        self._lock = threading.Lock()
        self._token, self._until = "", 0.0

    def authorization(self, method: str, path: str, headers: Mapping[str, str]) -> str:  # noqa: ARG002 - for all alike
        with self._lock:
            if time.time() > self._until:
                found = self._credential.get_token(_SCOPE)
                self._token, self._until = found.token, found.expires_on - _RENEW_SECONDS
            return f"Bearer {self._token}"


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes


class Wire:
    """A service of an account, at `url`. Safe to share between threads; makes no connection when it is made.

    `twice`: a request whose answer got lost is sent again, whatever it was. Otherwise not a POST or PATCH: the second
    would meet what the first has done, and its refusal would hide that.
    """

    def __init__(
        self, url: str, signer: Signer, version: str, pool: PoolManager | None = None, *, twice: bool = False
    ) -> None:
        self._twice = twice
        self.url = url.rstrip("/")
        self._version = version
        self._path = urlsplit(self.url).path
        self._signer = signer
        self._pool = pool
        self._lock = threading.Lock()

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        with self._lock:
            if self._pool:
                self._pool.clear()

    def send(self, method: str, path: str, headers: Mapping[str, str], body: bytes = b"", query: str = "") -> Answer:
        """Make a request, after a fault of the service or a lost connection again; `path` and `query` are encoded.

        Raises HttpResponseError for a refusal and AzureError without an answer.
        """
        from urllib3.exceptions import HTTPError

        signed = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": self._version, **headers}
        signed["Authorization"] = self._signer.authorization(method, f"{self._path}{path}", signed)
        url = f"{self.url}{path}{'?' if query else ''}{query}"
        try:
            found = self._connections().urlopen(
                method,
                url,
                body=body or None,
                headers=signed,
                retries=_retry(self._twice or method not in ("POST", "PATCH")),
                redirect=False,
                timeout=_timeout(),
            )
        except HTTPError as exc:
            raise ServiceRequestError(f"{type(exc).__name__}: {getattr(exc, 'reason', None) or exc}") from exc
        if found.status >= 400:
            raise error(found.status, found.headers, found.data)
        return Answer(found.status, found.headers, found.data)

    def _connections(self) -> PoolManager:
        with self._lock:
            if self._pool is None:
                self._pool = _pool(self.url)
            return self._pool


def error(status: int, headers: Mapping[str, str], body: bytes) -> HttpResponseError:
    """A refusal: `error_code` is the service's code, `message` its first sentence."""
    code, message = headers.get("x-ms-error-code", ""), f"The service answered {status}."
    try:
        told = json.loads(body)["odata.error"]
        code, message = str(told["code"]), str(told["message"]["value"])
    except (ValueError, KeyError, TypeError):  # XML, or not from the service itself
        if found := re.search(rb"<Message>([^<]*)", body):
            message = found[1].decode(errors="replace")
    kind = ClientAuthenticationError if status == 401 else HttpResponseError
    made = kind(message.partition("\n")[0])
    made.status_code = status
    made.__dict__["error_code"] = code  # where the SDKs have it
    return made


def _retry(after_a_lost_answer: bool) -> Any:
    from urllib3 import Retry

    return Retry(
        TRIES_MORE,
        read=None if after_a_lost_answer else 0,
        redirect=False,
        allowed_methods=None,
        status_forcelist=PASSING,
        backoff_factor=BACKOFF_SECONDS,
        retry_after_max=int(READ_SECONDS),
        raise_on_status=False,
    )


def _timeout() -> Any:
    from urllib3 import Timeout

    return Timeout(connect=CONNECT_SECONDS, read=READ_SECONDS)


def _pool(url: str) -> PoolManager:
    """Connections as the environment wants them: its authorities and its proxy, by the names that the SDKs read."""
    from urllib3 import PoolManager, ProxyManager

    parts = urlsplit(url)
    options: dict[str, Any] = {"maxsize": CONNECTIONS}
    if parts.scheme == "https":
        authorities = os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("CURL_CA_BUNDLE")
        options["ssl_context"] = ssl.create_default_context(cafile=authorities)
    proxy = getproxies().get(parts.scheme)
    if proxy and not proxy_bypass(parts.hostname or ""):
        return ProxyManager(proxy, **options)
    return PoolManager(**options)

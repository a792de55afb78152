"""The calls to the app's HTTP API that the demo makes."""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from typing import Any

TIMEOUT_SECONDS = 30.0


@dataclass(frozen=True)
class Api:
    """`url` is the API's address, `http://127.0.0.1:P/api`."""

    url: str

    def get(self, path: str) -> Any | None:
        """The JSON at this path, or None for what is not there, or not answered, yet."""
        try:
            return json.loads(self._read(path)[0])
        except OSError as exc:
            _raise_if_refused(exc)
            return None

    def log(self, run: str, rank: int, offset: int) -> tuple[str, int]:
        """The log of one process from this byte on, and where to go on next. ('', offset) if there is no more yet."""
        try:
            data, headers = self._read(f"runs/{urllib.parse.quote(run)}/logs?rank={rank}&offset={offset}")
        except OSError as exc:
            _raise_if_refused(exc)
            return "", offset
        return data.decode("utf-8", "replace"), int(headers.get("x-next-offset", offset + len(data)))

    def _read(self, path: str) -> tuple[bytes, Any]:
        request = urllib.request.Request(f"{self.url}/{path}")  # noqa: S310  # the address is our own http:// one
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as response:  # noqa: S310
            return response.read(), response.headers


def _raise_if_refused(exc: OSError) -> None:
    """Raise for an answer that another try won't change. A host that is being restarted gives no answer at all."""
    if isinstance(exc, urllib.error.HTTPError) and exc.code < 500 and exc.code != 404:
        raise exc

"""The HTTP transport of the SDKs: requests, without per-request work for browsers.

requests.Session rebuilds every request from cookies, hooks, redirects, the user's netrc and the environment's proxies.
The SDKs pass requests that are already complete, and this work is a third of the cost of a small request. Connections,
errors and answers are those of azure-core's RequestsTransport; the environment is read once per server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import requests
from requests.adapters import HTTPAdapter

if TYPE_CHECKING:
    from azure.core.pipeline.transport import RequestsTransport

# Connections kept open per server, enough for the threads of HTTP and queue handlers. Any connection beyond that is
# closed after its request, and the next request needs a new handshake.
CONNECTIONS = 128
_MOST_KNOWN = 100  # servers whose settings are cached


class _Session(requests.Session):
    """Sends prepared requests directly; a request with a streamed body goes through requests as usual."""

    def __init__(self) -> None:
        super().__init__()
        for scheme in ("http://", "https://"):
            self.mount(scheme, HTTPAdapter(pool_maxsize=CONNECTIONS))
        self._settings: dict[Any, dict[str, Any]] = {}
        self._encodings = str(self.headers["Accept-Encoding"])

    def request(self, method: str, url: str, **given: Any) -> requests.Response:  # type: ignore[override]
        data, headers = given.get("data"), given.get("headers")
        if given.get("files") or headers is None or not (data is None or isinstance(data, str | bytes)):
            return super().request(method, url, **given)
        ready = requests.PreparedRequest()
        ready.method, ready.url = method, url
        ready.headers = requests.structures.CaseInsensitiveDict(headers)
        ready.headers.setdefault("Accept-Encoding", self._encodings)
        ready.body = data.encode() if isinstance(data, str) else data
        settings = self._settings_for(url, given)
        answer = self.get_adapter(url).send(ready, timeout=given.get("timeout"), **settings)
        if not settings["stream"]:
            _ = answer.content  # read the whole body, so that the connection is free again
        return answer

    def _settings_for(self, url: str, given: dict[str, Any]) -> dict[str, Any]:
        """Return proxies, certificates, and whether the answer is read at once."""
        options = [given.get(name) for name in ("proxies", "stream", "verify", "cert")]
        if options[0]:
            return self.merge_environment_settings(url, *options)
        key = (url[: url.find("/", len("https://"))], *options[1:])
        if (settings := self._settings.get(key)) is None:
            settings = self.merge_environment_settings(url, {}, *options[1:])
            if len(self._settings) < _MOST_KNOWN:
                self._settings[key] = settings
        return settings


def transport(**timeouts: float) -> RequestsTransport:
    """A transport for one client. `timeouts` are `connection_timeout` and `read_timeout`, in seconds."""
    from azure.core.pipeline.transport import RequestsTransport

    return RequestsTransport(session=_Session(), **timeouts)

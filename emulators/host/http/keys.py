"""Who may call what: the host's keys. Off by default, as with the Core Tools on a developer's machine."""

from __future__ import annotations

import hmac

from aiohttp import web

from emulators.host.config import Keys


class Gate:
    """Compares a request's key, from the header x-functions-key or else `?code=`, with the host's."""

    def __init__(self, keys: Keys, *, required: bool) -> None:
        self._keys = keys
        self._required = required

    def admits(self, request: web.Request, auth_level: str) -> bool:
        """The master key opens every level; a system key does not open `function`."""
        if not self._required or auth_level == "anonymous" or _equal(request, self._keys.master):
            return True
        return auth_level == "function" and _equal(request, self._keys.function)

    def admits_event_grid(self, request: web.Request) -> bool:
        return self.admits(request, "admin") or _equal(request, self._keys.eventgrid_extension)


def _equal(request: web.Request, key: str) -> bool:
    given = request.headers.get("x-functions-key") or request.query.get("code") or ""
    sent = given.encode(errors="surrogateescape")  # as the bytes came, also those that are no UTF-8
    return bool(key) and hmac.compare_digest(sent, key.encode())

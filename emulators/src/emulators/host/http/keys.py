"""Authorization by the host's keys. It is off by default, as with the Core Tools on a developer's machine."""

from __future__ import annotations

import hmac

from aiohttp import web

from emulators.host.config import Keys


class Gate:
    """Compares a request's key, from the header x-functions-key or else `?code=`, with the host's keys.

    A refusal is a 401 without a known key, or a 403 for a key of too low a level.
    """

    def __init__(self, keys: Keys, *, required: bool) -> None:
        self._keys = keys
        self._required = required

    def refusal(self, request: web.Request, auth_level: str) -> int | None:
        """Return the status with which a request is refused, or None. The master key opens every level; a system
        key does not open `function`."""
        if auth_level == "anonymous":
            return None
        return self._refusal(request, {"master", auth_level})

    def refusal_of_event_grid(self, request: web.Request) -> int | None:
        return self._refusal(request, {"master", "eventgrid_extension"})

    def _refusal(self, request: web.Request, sufficient: set[str]) -> int | None:
        if not self._required:
            return None
        sent = _sent(request)
        names = {name for name, key in vars(self._keys).items() if key and hmac.compare_digest(sent, key.encode())}
        if names & sufficient:
            return None
        return 403 if names else 401


def _sent(request: web.Request) -> bytes:
    given = request.headers.get("x-functions-key") or request.query.get("code") or ""
    return given.encode(errors="surrogateescape")  # the original bytes, even if they are not UTF-8

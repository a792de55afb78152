"""Keeps web pages out of the emulators. Any page that a person visits can send requests to 127.0.0.1, and can point
a name of its own to this address (DNS rebinding). `only_from_here` is the check for an aiohttp server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from aiohttp import web

LOCAL_NAMES = {"127.0.0.1", "localhost", "::1"}


def refusal(host: str, scheme: str, origin: str | None, site: str | None) -> str | None:
    """Return the reason for refusing a request with these headers (Host, Origin, Sec-Fetch-Site), or None for an
    allowed request.

    Programs send neither Origin nor Sec-Fetch-Site. A page sends its Origin with every request that can change
    something, and current browsers send Sec-Fetch-Site with all others.
    """
    if _name(host) not in LOCAL_NAMES:
        return f"This server answers for {', '.join(sorted(LOCAL_NAMES))} only."
    foreign = origin is not None and origin != f"{scheme}://{host}"
    if foreign or (site or "none") not in ("none", "same-origin"):
        return "Web pages of other origins may not call this server."
    return None


@web.middleware
async def only_from_here(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Answer 403 to a request whose Host is not this machine, or that comes from a page of another origin. This
    middleware must come first."""
    headers = request.headers
    why = refusal(headers.get("Host", ""), request.scheme, headers.get("Origin"), headers.get("Sec-Fetch-Site"))
    return web.Response(status=403, text=why) if why else await handler(request)


def _name(host: str) -> str | None:
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:  # such as an unclosed bracket
        return None

"""Keep web pages out. This host asks for no keys, and any page that a person visits can send requests to 127.0.0.1."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from aiohttp import web

LOCAL_NAMES = {"127.0.0.1", "localhost", "::1"}


@web.middleware
async def only_from_here(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """403 for a Host that is not this machine (DNS rebinding), and for what a page of another origin sends."""
    if urlsplit(f"//{request.host}").hostname not in LOCAL_NAMES:
        return web.Response(status=403, text=f"This host answers for {', '.join(sorted(LOCAL_NAMES))} only.")
    origin = request.headers.get("Origin")
    foreign = origin is not None and origin != f"http://{request.host}"
    if foreign or request.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
        return web.Response(status=403, text="Web pages of other origins may not call this host.")
    return await handler(request)

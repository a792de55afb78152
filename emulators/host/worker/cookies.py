"""One spelling for Set-Cookie, whichever backend took the cookie apart."""

from __future__ import annotations

from collections.abc import Mapping

_ATTRIBUTES = ("expires", "max-age", "domain", "path", "secure", "samesite", "httponly")  # ASP.NET's order


def set_cookie(name: str, value: str, attributes: Mapping[str, str | bool | None]) -> str:
    """Build the header value. Attributes that are empty, False or None are left out; True stands alone."""
    parts = [f"{name}={value}"]
    for attribute in _ATTRIBUTES:
        if content := attributes.get(attribute):
            parts.append(attribute if content is True else f"{attribute}={content}")
    return "; ".join(parts)

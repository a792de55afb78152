"""The Set-Cookie header in one spelling, whichever backend parsed the cookie."""

from __future__ import annotations

from collections.abc import Mapping

_ATTRIBUTES = ("expires", "max-age", "domain", "path", "secure", "samesite", "httponly")  # ASP.NET's order


def set_cookie(name: str, value: str, attributes: Mapping[str, str | bool | None]) -> str:
    """Build the header value. Attributes that are empty, False or None are left out, but for domain and path; True
    stands alone. Empty ones of these two are Azure's: the host writes what the worker tells of them.
    """
    parts = [f"{name}={value}"]
    for attribute in _ATTRIBUTES:
        content = attributes.get(attribute)
        if content or attribute in ("domain", "path"):
            parts.append(attribute if content is True else f"{attribute}={content or ''}")
    return "; ".join(parts)

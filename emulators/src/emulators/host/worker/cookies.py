"""The Set-Cookie header in one spelling, whichever backend parsed the cookie."""

from __future__ import annotations

from collections.abc import Mapping

_ATTRIBUTES = ("expires", "max-age", "domain", "path", "secure", "samesite", "httponly")  # ASP.NET's order


def set_cookie(name: str, value: str, attributes: Mapping[str, str | bool | None]) -> str:
    """Build the header value. Attributes of the value empty, False or None are left out, except domain and path; True
    stands alone. Empty domains and paths are Azure's: the host writes the worker's values.
    """
    parts = [f"{name}={value}"]
    for attribute in _ATTRIBUTES:
        content = attributes.get(attribute)
        if content or attribute in ("domain", "path"):
            parts.append(attribute if content is True else f"{attribute}={content or ''}")
    return "; ".join(parts)

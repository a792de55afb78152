"""The Set-Cookie header in one format, whichever backend parsed the cookie."""

from __future__ import annotations

from collections.abc import Mapping

_ATTRIBUTES = ("expires", "max-age", "domain", "path", "secure", "samesite", "httponly")  # ASP.NET's order


def set_cookie(name: str, value: str, attributes: Mapping[str, str | bool | None]) -> str:
    """Build the header value. Attributes that are empty, False or None are omitted, except domain and path. An
    attribute that is True has no value. Azure also sends empty domains and paths, because the host writes the
    worker's values."""
    parts = [f"{name}={value}"]
    for attribute in _ATTRIBUTES:
        content = attributes.get(attribute)
        if content or attribute in ("domain", "path"):
            parts.append(attribute if content is True else f"{attribute}={content or ''}")
    return "; ".join(parts)

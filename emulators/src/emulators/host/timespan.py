"""The .NET TimeSpan format in host.json, timer schedules and retry policies."""

from __future__ import annotations

import re
from datetime import timedelta

_TEXT = re.compile(r"(?:(?P<days>\d+)\.)?(?P<hours>\d{1,2}):(?P<minutes>\d{2})(?::(?P<seconds>\d{2}(?:\.\d{1,7})?))?")


def parse(text: str) -> timedelta:
    """Read `[d.]hh:mm[:ss[.f]]`. Raises ValueError with the text. `60` minutes or seconds are an error."""
    match = _TEXT.fullmatch(text.strip())
    if not match:
        raise ValueError(f"{text!r} is not a time span ([d.]hh:mm:ss)")
    days, hours, minutes = (int(match[name] or 0) for name in ("days", "hours", "minutes"))
    seconds = float(match["seconds"] or 0)
    if hours > 23 or minutes > 59 or seconds >= 60:
        raise ValueError(f"{text!r} is not a time span: hours end at 23, minutes and seconds at 59")
    return timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)

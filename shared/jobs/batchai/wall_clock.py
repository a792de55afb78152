"""Parse the time limit of a job in each format that Batch AI's documents and responses use. Pure."""

from __future__ import annotations

import re

WEEK = 7 * 86_400  # Batch AI's limit for a job without one

_ISO = re.compile(
    r"P(?!$)(?:(?P<weeks>\d+)W)?(?:(?P<days>\d+)D)?"
    r"(?:T(?=\d)(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d+)?)S)?)?"
)
_CLOCK = re.compile(  # 7.00:00:00 as .NET writes it, 7 days, 0:00:00 as Python does
    r"(?:(?P<days>\d+)(?:\.| days?,? ))?(?P<hours>\d+):(?P<minutes>[0-5]?\d):(?P<seconds>[0-5]?\d(?:\.\d+)?)"
)
_UNITS = {"weeks": WEEK, "days": 86_400, "hours": 3600, "minutes": 60, "seconds": 1}


def read_wall_clock(text: str) -> int | None:
    """Whole seconds, at least 1; None for an invalid duration."""
    match = _ISO.fullmatch(text.strip()) or _CLOCK.fullmatch(text.strip())
    if not match or len(text) > 100:
        return None
    seconds = sum(float(value) * _UNITS[unit] for unit, value in match.groupdict().items() if value)
    return int(seconds) if 1 <= seconds < 2**31 else None

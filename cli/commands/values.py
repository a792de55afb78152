"""Parsers of option values: durations, moments, dates, numbers of nodes."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import typer

UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def date(text: str, option: str = "--done-by") -> str | None:
    """Parse a moment in this machine's time zone, or a time of day such as `18:00`, which means its next
    occurrence. Returns ISO 8601 with the zone, None for an empty text. Raises BadParameter for other text."""
    if not text:
        return None
    now = datetime.now().astimezone()
    try:
        if clock := re.fullmatch(r"(\d{1,2}):(\d\d)", text):
            at = now.replace(hour=int(clock[1]), minute=int(clock[2]), second=0, microsecond=0)
            return (at if at > now else at + timedelta(days=1)).isoformat()
        return datetime.fromisoformat(text).astimezone().isoformat()
    except ValueError:
        words = f"{option} is {text!r}; write a time of day such as 18:00, or a date and time such as 2026-01-31T18:00."
        raise typer.BadParameter(words) from None


def nodes(text: str) -> int | dict[str, int] | None:
    """Parse a number of nodes, `4`, or a range, `1:4`. Returns None for an empty text. Raises BadParameter for
    other text."""
    if not (match := re.fullmatch(r"(\d{1,4})(?::(\d{1,4}))?", text)) and text:
        raise typer.BadParameter(f"--nodes is {text!r}; write a number, or a range such as 1:4.")
    if match is None:
        return None
    if "0" in (match[1].lstrip("0") or "0", (match[2] or "1").lstrip("0") or "0"):
        raise typer.BadParameter(f"--nodes is {text!r}; a run needs at least one node.")
    return {"min": int(match[1]), "max": int(match[2])} if match[2] else int(match[1])


def seconds(text: str) -> int:
    """Parse a duration, for example `90`, `90s`, `15m`, `2h` or `1d`, into seconds. Raises BadParameter for other
    text.
    """
    number, unit = (text[:-1], text[-1]) if text[-1:] in UNITS else (text, "s")
    if not number.isascii() or not number.isdigit():
        raise typer.BadParameter(f"{text!r} is not a duration: write seconds, or 90m, 2h, 1d.")
    return int(number) * UNITS[unit]


def moment(text: str) -> str:
    """Parse a duration before now, for example `2h`, or a moment. Returns ISO 8601 in UTC. Raises BadParameter for
    other text.
    """
    if text[-1:] in UNITS and text[:-1].isdigit():
        return (datetime.now(UTC) - timedelta(seconds=seconds(text))).isoformat(timespec="seconds")
    try:
        return datetime.fromisoformat(text).astimezone(UTC).isoformat(timespec="seconds")
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a time: write 90m, 2h or 7d ago, or 2026-01-31T12:00.") from None


def until(text: str) -> str:
    """Parse a moment in the future: a duration from now such as `8h`, a time of day in this machine's time zone, or a
    date and time. Returns ISO 8601 with the zone. Raises BadParameter for other text."""
    if text[-1:] in UNITS and text[:-1].isdigit():
        return (datetime.now(UTC) + timedelta(seconds=seconds(text))).isoformat(timespec="seconds")
    return date(text, "--until") or ""

"""Counters and levels, used only if telemetry is on (functions/telemetry.py)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

OnCount = Callable[[str, Mapping[str, str]], None]
OnLevel = Callable[[str, float, Mapping[str, str]], None]
_listeners: list[tuple[OnCount, OnLevel]] = []


def listen(on_count: OnCount, on_level: OnLevel) -> None:
    """Call these for each count and each level from now on, with its name and attributes."""
    _listeners.append((on_count, on_level))


def count(name: str, **attributes: str) -> None:
    for on_count, _ in _listeners:
        on_count(name, attributes)


def level(name: str, value: float, **attributes: str) -> None:
    """How much there is now."""
    for _, on_level in _listeners:
        on_level(name, value, attributes)

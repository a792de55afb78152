"""Counters and gauges, which are used only if telemetry is on (functions/telemetry.py)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

OnCount = Callable[[str, Mapping[str, str]], None]
OnLevel = Callable[[str, float, Mapping[str, str]], None]
_listeners: list[tuple[OnCount, OnLevel]] = []


def listen(on_count: OnCount, on_level: OnLevel) -> None:
    """Call `on_count` for each count and `on_level` for each level from now on, with the name and the attributes."""
    _listeners.append((on_count, on_level))


def count(name: str, **attributes: str) -> None:
    for on_count, _ in _listeners:
        on_count(name, attributes)


def level(name: str, value: float, **attributes: str) -> None:
    """Report the current value of a gauge."""
    for _, on_level in _listeners:
        on_level(name, value, attributes)

"""Counters, used only if telemetry is on (functions/telemetry.py)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

Listener = Callable[[str, Mapping[str, str]], None]
_listeners: list[Listener] = []


def listen(listener: Listener) -> None:
    """Call this for each count from now on, with its name and attributes."""
    _listeners.append(listener)


def count(name: str, **attributes: str) -> None:
    for listener in _listeners:
        listener(name, attributes)

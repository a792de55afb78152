"""YAML that we deploy, read as fast as it can be: the app reads all of it when it starts."""

from __future__ import annotations

from typing import Any

import yaml

_FAST: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def load(text: str) -> Any:
    """What the text holds. Raises yaml.YAMLError."""
    try:
        return yaml.load(text, _FAST)  # noqa: S506 - it is the safe loader, written in C
    except yaml.YAMLError:
        return yaml.safe_load(text)  # fails too, and shows the line

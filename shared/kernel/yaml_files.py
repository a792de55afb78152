"""Read YAML files of the deployment as fast as possible, because the app reads every file at startup."""

from __future__ import annotations

from typing import Any

import yaml

_FAST: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def load(text: str) -> Any:
    """Parse the text. Raises yaml.YAMLError."""
    try:
        return yaml.load(text, _FAST)  # noqa: S506 - this is the safe loader, written in C
    except yaml.YAMLError:
        return yaml.safe_load(text)  # fails too, with the line in its error

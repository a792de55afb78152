"""Read YAML files of the deployment as fast as possible, because the app reads every file at startup."""

from __future__ import annotations

from typing import Any

import yaml

_FAST: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _UniqueKeys(_FAST):  # type: ignore[misc]
    """The safe loader. It refuses a mapping with the same key twice, of which YAML would keep the last value."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if key.tag == "tag:yaml.org,2002:str" and key.value in seen:
                raise yaml.constructor.ConstructorError(None, None, f"{key.value!r} is there twice", key.start_mark)
            seen.add(key.value if isinstance(key.value, str) else "")
        mapping: dict[Any, Any] = super().construct_mapping(node, deep)
        return mapping


def load(text: str) -> Any:
    """Parse the text. Raises yaml.YAMLError."""
    try:
        return yaml.load(text, _UniqueKeys)  # noqa: S506 - a safe loader, written in C
    except yaml.constructor.ConstructorError:
        raise
    except yaml.YAMLError:
        return yaml.safe_load(text)  # fails too, with the line in its error

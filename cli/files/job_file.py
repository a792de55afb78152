"""Reading a job from a YAML or JSON file, as values that JSON can represent. Errors give the line of a value that
can't be sent."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, NoReturn

import yaml

from ..errors import CliError, unreadable

DEEPEST = 100  # levels; a job has about five
JSON_TYPES = (str, int, float, bool, type(None))


def load(file: Path) -> dict[str, Any]:
    """Read a job. Raises CliError, with the line if YAML knows the line, for a file without a job or for an unsendable
    job.
    """
    try:
        text = file.read_text("utf-8")
    except OSError as exc:
        raise unreadable(file, exc) from exc
    except ValueError as exc:
        raise CliError(f"{file} is not a valid job file: {exc}") from exc
    return parsed(text, file)


def parsed(text: str, file: Path) -> dict[str, Any]:
    """Parse the text of a job file with this name. Raises CliError as `load` does."""
    read = _json if file.suffix == ".json" else _yaml  # YAML accepts JSON, but not JSON's surrogate pairs
    try:
        content = read(text)
    except (yaml.YAMLError, ValueError) as exc:
        raise CliError(f"{file} is not a valid job file: {exc}") from exc
    except RecursionError:
        raise CliError(f"{file} is not a valid job file: it is nested deeper than {DEEPEST} levels.") from None
    if not isinstance(content, dict):
        raise CliError(f"{file} does not contain a job: a mapping with `command`, `environment` and so on.")
    return content


def _json(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_object, parse_constant=_no_number, parse_float=_number)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, value in pairs:
        if key in values:
            raise ValueError(f"the key {key!r} is there twice.")
        values[key] = value
    return values


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is a number that JSON can't represent.")


def _number(text: str) -> float:
    return float(text) if math.isfinite(float(text)) else _no_number(text)


def _yaml(text: str) -> Any:
    for event in yaml.parse(text, yaml.SafeLoader):
        if isinstance(event, yaml.AliasEvent):
            _refuse(event, f"aliases (*{event.anchor}) are not allowed; write the value itself.")
    loader = yaml.SafeLoader(text)
    try:
        node = loader.get_single_node()
        return None if node is None else _value(loader, node, 0)
    finally:
        loader.dispose()


def _value(loader: yaml.SafeLoader, node: yaml.Node, depth: int) -> Any:
    if depth > DEEPEST:
        _refuse(node, f"it is nested deeper than {DEEPEST} levels.")
    if isinstance(node, yaml.SequenceNode) and node.tag == "tag:yaml.org,2002:seq":
        return [_value(loader, item, depth + 1) for item in node.value]
    if isinstance(node, yaml.MappingNode) and node.tag == "tag:yaml.org,2002:map":
        return _mapping(loader, node, depth)
    if not isinstance(node, yaml.ScalarNode):
        _refuse(node, f"{node.tag.rpartition(':')[2]} is a value that JSON can't represent.")
    value = loader.construct_object(node)
    if isinstance(value, float) and not math.isfinite(value):
        _refuse(node, f"{node.value} is a number that JSON can't represent.")
    if not isinstance(value, JSON_TYPES):
        _refuse(node, f"{node.value} is read as a {type(value).__name__}; put it in quotes if you mean text.")
    return value


def _mapping(loader: yaml.SafeLoader, node: yaml.MappingNode, depth: int) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, content in node.value:
        if not isinstance(name, yaml.ScalarNode) or name.tag != "tag:yaml.org,2002:str":
            _refuse(name, f"the key {getattr(name, 'value', '')!r} is not text; put it in quotes.")
        if name.value in values:
            _refuse(name, f"the key {name.value!r} is there twice.")
        values[name.value] = _value(loader, content, depth + 1)
    return values


def _refuse(place: yaml.Node | yaml.Event, why: str) -> NoReturn:
    raise ValueError(f"line {place.start_mark.line + 1}: {why}" if place.start_mark else why)

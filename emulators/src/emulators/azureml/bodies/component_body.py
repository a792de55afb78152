"""Parses registered components: inputs, outputs, and the work of a step with the component. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from emulators.azureml.kernel.checks import mapping
from emulators.azureml.kernel.errors import BadRequest
from emulators.azureml.kernel.models import Json

LITERALS = frozenset({"string", "integer", "number", "boolean", "enum"})


@dataclass(frozen=True)
class ComponentInput:
    name: str
    kind: str  # of data, or one of LITERALS
    default: str | None
    optional: bool
    mode: str | None

    @property
    def is_literal(self) -> bool:
        return self.kind in LITERALS


@dataclass(frozen=True)
class ComponentOutput:
    """An output. A value of one of LITERALS is the text of a file that the step writes."""

    name: str
    kind: str  # of data, or one of LITERALS
    mode: str | None

    @property
    def is_literal(self) -> bool:
        return self.kind in LITERALS

    @property
    def stored_as(self) -> str:
        """Return the kind of the data in storage."""
        return "uri_file" if self.is_literal else self.kind


@dataclass(frozen=True)
class Component:
    """A registered component. `body` is the component's own document, with the keys of Azure ML's YAML."""

    kind: str  # command, pipeline, or an unsupported kind
    inputs: Mapping[str, ComponentInput]
    outputs: Mapping[str, ComponentOutput]
    deterministic: bool
    body: Json


def parse(document: Json) -> Component:
    """Read the `componentSpec` of a component's version."""
    return Component(
        kind=str(document.get("type")),
        inputs={name: _input(name, value) for name, value in mapping(document, "inputs").items()},
        outputs={name: _output(name, value) for name, value in mapping(document, "outputs").items()},
        deterministic=document.get("is_deterministic") is not False,
        body=document,
    )


def _input(name: str, body: Any) -> ComponentInput:
    if not isinstance(body, dict):
        raise BadRequest(f"The component's input {name!r} is {body!r:.80}; it must be an object with a type.")
    kind, default = str(body.get("type") or "uri_folder").lower(), body.get("default")
    optional = str(body.get("optional", False)).lower() == "true"
    return ComponentInput(name, kind, None if default is None else str(default), optional, body.get("mode"))


def _output(name: str, body: Any) -> ComponentOutput:
    given = body if isinstance(body, dict) else {}
    return ComponentOutput(name, str(given.get("type") or "uri_folder").lower(), given.get("mode"))

"""Read and write Azure ML's form of places and registered assets. Pure.

    azureml://datastores/drops/paths/mnist/a/     a Location
    azureml:trainyard@latest                      an Asset
    ./data, https://...                           text, unchanged

https://learn.microsoft.com/azure/machine-learning/reference-yaml-core-syntax
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from shared.jobs.location import Asset, Location, Pattern, Placeholder, Where

SCHEME = "azureml:"
PLACE_FORM = "azureml://datastores/<datastore>/paths/<path>"
ASSET_FORM = "azureml:<name>:<version>"
_DATASTORE = re.compile(
    r"azureml://(?:(subscriptions/[\w.-]+/resource[gG]roups/[\w.()-]+/(?:providers/[\w.]+/)?workspaces/[\w.-]+)/)?"
    r"datastores/([^/]+)/paths/(.*)",
    re.DOTALL,
)
_EXPRESSION = "${{"
_PLACEHOLDER = re.compile(r"\$\{\{\s*(\w+)\s*\}\}")
_PLACEHOLDERS = {
    "name": Placeholder.RUN,
    "output_name": Placeholder.OUTPUT,
    "default_datastore": Placeholder.DEFAULT_STORE,
}
_NAMES = {placeholder: name for name, placeholder in _PLACEHOLDERS.items()}


def has_expression(text: str) -> bool:
    """Whether Azure ML would replace a part of this text."""
    return _EXPRESSION in text


def read_place(text: str) -> Where:
    """The place named by this text. A text with an expression stays unchanged."""
    if has_expression(text) or not text.startswith(SCHEME):
        return text
    if match := _DATASTORE.fullmatch(text):
        return Location(match[2], match[3], match[1] or "")
    return Asset(text.removeprefix(SCHEME))


def read_asset(text: str) -> str | Asset:
    """The registered asset named by this text; any other text unchanged."""
    return Asset(text.removeprefix(SCHEME)) if text.startswith(SCHEME) else text


def read_output_place(text: str) -> Where | Pattern:
    """Like read_place, for an output. The place of an output may contain the run's name."""
    match = _DATASTORE.fullmatch(text)
    if not (match and not match[1] and has_expression(text)):
        return read_place(text)
    parts = tuple(_parts(f"{match[2]}/{match[3]}"))
    return text if any(isinstance(part, str) and has_expression(part) for part in parts) else Pattern(parts)


def _parts(text: str) -> Iterator[str | Placeholder]:
    end = 0
    for match in _PLACEHOLDER.finditer(text):
        if text[end : match.start()]:
            yield text[end : match.start()]
        yield _PLACEHOLDERS.get(match[1], match[0])
        end = match.end()
    if text[end:]:
        yield text[end:]


def place_text(where: Where | Pattern) -> str:
    """The place in Azure ML's form. Reading the form gives an equal place."""
    if isinstance(where, Asset):
        return f"{SCHEME}{where.id}"
    if isinstance(where, Pattern):
        return _place("", "".join(_spelled(part) for part in where.parts))
    return _place(where.workspace, str(where)) if isinstance(where, Location) else where


def _spelled(part: str | Placeholder) -> str:
    return f"${{{{{_NAMES[part]}}}}}" if isinstance(part, Placeholder) else part


def _place(workspace: str, store_and_path: str) -> str:
    store, _, path = store_and_path.partition("/")
    return f"{SCHEME}//{f'{workspace}/' if workspace else ''}datastores/{store}/paths/{path}"

"""Checks the REST bodies of assets: the fields of a version, and of a name of versions. No I/O."""

from __future__ import annotations

import json
import re

from emulators.azureml.kernel.checks import flag, mapping, optional_text, text, texts
from emulators.azureml.kernel.errors import BadRequest, among
from emulators.azureml.kernel.models import Json

KINDS = ("codes", "components", "data", "environments", "models")
# The immutable fields of a version. All other fields may change.
FIXED = {
    "codes": ("codeUri",),
    "components": ("componentSpec",),
    "data": ("dataType", "dataUri"),
    "environments": ("image", "condaFile", "build", "osType", "inferenceConfig"),
    "models": ("modelUri", "modelType"),
}
TEXTS = {
    "codes": ("codeUri",),
    "components": (),
    "data": ("dataType", "dataUri"),
    "environments": ("image", "condaFile", "osType", "autoRebuild", "stage"),
    "models": ("modelUri", "modelType", "jobName", "stage"),
}
OBJECTS = {
    "codes": (),
    "components": ("componentSpec",),
    "data": ("autoDeleteSetting",),
    "environments": ("build", "inferenceConfig"),
    "models": ("flavors",),
}
DATA_TYPES = frozenset({"uri_file", "uri_folder", "mltable"})
MODEL_TYPES = frozenset({"custom_model", "mlflow_model", "triton_model"})
NAME = re.compile(r"[a-zA-Z0-9][\w.-]{0,254}")  # of assets, and of versions
SPEC_SAYS = frozenset({"$schema", "_source", "name", "version", "display_name", "description", "tags", "properties"})
COMPONENTS = frozenset({"command", "parallel", "pipeline"})


def checked(kind: str, name: str, version: str, body: Json) -> Json:
    """Return the checked `properties` of a version. Raises BadRequest with the wrong value and the allowed values."""
    for what, value in (("name", name), ("version", version)):
        if not NAME.fullmatch(value):
            raise BadRequest(
                f"The {what} {value!r} of an asset: letters, digits, '-', '_' and '.', at most 255 of them."
            )
    common = _common(body)
    for key in TEXTS[kind]:
        optional_text(body, key)
    for key in OBJECTS[kind]:
        mapping(body, key)
    _check_kind(kind, body)
    filled: Json = {"isAnonymous": flag(body, "isAnonymous")}
    if kind == "models":
        filled["flavors"] = mapping(body, "flavors")  # the SDK always reads them
    if kind == "components":
        filled["componentSpec"] = {**mapping(body, "componentSpec"), "name": name, "version": version}
    return {**body, **common, **filled}


def content(kind: str, body: Json) -> dict[str, str]:
    """Return the immutable parts of a version for comparisons. Missing, null and empty values are equal."""
    found = {key: body.get(key) for key in FIXED[kind]}
    if kind == "components":
        spec = mapping(body, "componentSpec")
        found["componentSpec"] = {key: value for key, value in spec.items() if key not in SPEC_SAYS}
    return {key: json.dumps(value or None, sort_keys=True) for key, value in found.items()}


def shelf(kind: str, body: Json) -> Json:
    """Return the properties of an asset's name, which all its versions share."""
    found = {**_common(body), "description": optional_text(body, "description")}
    if kind == "data":
        found["dataType"] = _one_of(body, "dataType", DATA_TYPES)
    return found


def _common(body: Json) -> Json:
    optional_text(body, "description")
    # The contract requires a map of strings, but azure-ai-ml sends its hash_version as a number.
    strings = {key: str(value) for key, value in mapping(body, "properties").items()}
    return {"properties": strings, "tags": texts(body, "tags"), "isArchived": flag(body, "isArchived")}


def _check_kind(kind: str, body: Json) -> None:
    if kind == "data":
        _one_of(body, "dataType", DATA_TYPES)
        text(body, "dataUri")
    if kind == "models":
        text(body, "modelUri")
        if body.get("modelType") is not None:
            _one_of(body, "modelType", MODEL_TYPES)
    if kind == "components":
        made_of = mapping(body, "componentSpec").get("type")
        if made_of not in COMPONENTS:
            raise BadRequest(f"A component of type {made_of!r} is not supported here; supported: {among(COMPONENTS)}.")


def _one_of(body: Json, key: str, choices: frozenset[str]) -> str:
    value = text(body, key)
    if value not in choices:
        raise BadRequest(f"{key} is {value!r:.80}; choose {among(choices)}.")
    return value

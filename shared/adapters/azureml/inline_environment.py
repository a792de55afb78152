"""An environment described inside a job, for Resource Manager: an anonymous version, named by its content.

azure-ai-ml would read the environment's files from this machine, which does not have them, and needs more requests.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

import yaml

NAME = "CliV2AnonymousEnvironment"  # the name that azure-ai-ml uses
_KEYS = {"image", "conda_file", "build", "name", "version", "description", "tags", "os_type"}
Json = dict[str, Any]


def inline_environment(described: Any, address: Callable[[str], str]) -> tuple[str, Json] | None:
    """Return the path below the workspace and the body of the PUT; None for an environment that the SDK has to write.

    `address` returns the URL of the folder at an azureml:// path, for a build context.
    """
    if not isinstance(described, dict) or set(described) - _KEYS:
        return None
    properties: Json = {"isAnonymous": True, "isArchived": False, "osType": "Linux"}
    conda, build = described.get("conda_file"), described.get("build")
    if described.get("image"):
        properties["image"] = str(described["image"])
    if isinstance(conda, dict):
        properties["condaFile"] = yaml.safe_dump(conda, sort_keys=True)
    if isinstance(build, dict) and str(build.get("path", "")).startswith("azureml://"):
        properties["build"] = _build(build, address)
    if not ({"image", "build"} & set(properties)) or ("conda_file" in described) != ("condaFile" in properties):
        return None
    digest = hashlib.sha256(json.dumps(properties, sort_keys=True).encode()).hexdigest()[:32]
    return f"environments/{NAME}/versions/{digest}", {"properties": properties}


def _build(build: Mapping[str, Any], address: Callable[[str], str]) -> Json:
    return {
        "contextUri": address(str(build["path"])),
        "dockerfilePath": str(build.get("dockerfile_path") or "Dockerfile"),
    }

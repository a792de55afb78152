"""Which kind of Batch AI document something is, told by its content, and where its fields lie. Pure."""

from __future__ import annotations

import json
import re
from typing import Annotated, Any

from msgspec import Meta, Struct

TOOLKITS = (
    "pyTorchSettings", "tensorFlowSettings", "horovodSettings", "chainerSettings", "cntkSettings", "caffeSettings",
    "caffe2Settings", "customMpiSettings", "customToolkitSettings",
)  # fmt: skip
_OF_JOB = frozenset({*TOOLKITS, "nodeCount", "stdOutErrPathPrefix", "jobPreparation"})
_OF_CLUSTER = frozenset({"vmSize", "vmPriority", "scaleSettings", "nodeSetup", "userAccountSettings"})
_OF_PROJECT = frozenset({"clusterName", "persistCluster", "sourceScript", "monitorFileName", "blobContainerName"})

_SCRIPT = re.compile(r"/([\w-][\w.-]*\.(?:py|sh|cntk|prototxt))\b")

JOB, CLUSTER, PROJECT = "job", "cluster", "project"


class BatchAI(Struct, forbid_unknown_fields=True):
    """What comes with a Batch AI job.json, which alone does not say where its files are."""

    cluster: Annotated[dict[str, Any] | None, Meta(description="The cluster.json, for its mounts.")] = None
    project: Annotated[dict[str, Any] | None, Meta(description="The project.json.")] = None
    mounts: Annotated[
        dict[str, Annotated[str, Meta(min_length=1, max_length=1024)]],
        Meta(description="Where the files of a mount are, by its path, share or container: as `data` is written."),
    ] = {}
    storage_account: Annotated[
        Annotated[str, Meta(pattern="^[a-z0-9]{3,24}$")] | None,
        Meta(description="Fills <AZURE_BATCHAI_STORAGE_ACCOUNT>."),
    ] = None
    environment: Annotated[
        Annotated[str, Meta(min_length=1, max_length=1024)] | None,
        Meta(
            description="An environment to take instead of the document's image: azureml:<name>:<version>, or an image."
        ),
    ] = None
    files: Annotated[
        dict[Annotated[str, Meta(min_length=1, max_length=1024)], Annotated[str, Meta(max_length=65536)]],
        Meta(
            max_length=20,
            description="Texts to lay into mounts: by path, logs/scripts/train.py, or by the mere name of a script.",
        ),
    ] = {}
    strict: Annotated[bool, Meta(description="Refuse the document if any field has no full equivalent.")] = False


def is_job(content: Any) -> bool:
    """Whether this is a Batch AI job, and no job of Azure ML."""
    return kind_of(content) == JOB


def kind_of(content: Any) -> str:
    """job, cluster or project; '' for anything else, such as an Azure ML job.

    An Azure ML job may have `properties` too, but they are texts, and it has a `command`.
    """
    if not isinstance(content, dict) or "command" in content:
        return ""
    inner = content.get("properties")
    fields = inner if isinstance(inner, dict) else content
    if _has(fields, _OF_JOB):
        return JOB
    if _has(fields, _OF_CLUSTER):
        return CLUSTER
    if inner is None and len(_names(content) & {name.lower() for name in _OF_PROJECT}) >= 2:
        return PROJECT
    schema = str(content.get("$schema", "")).lower()
    if "/batchai/" in schema:
        return CLUSTER if schema.endswith("cluster.json") else JOB
    return ""


def scripts_of(content: Any) -> list[str]:
    """The names of the scripts that a job names, at most ten: whoever has them beside the job may send them with it."""
    return list(dict.fromkeys(_SCRIPT.findall(json.dumps(content))))[:10]


def _has(fields: dict[str, Any], known: frozenset[str]) -> bool:
    return bool(_names(fields) & {name.lower() for name in known})


def _names(fields: dict[str, Any]) -> set[str]:
    return {str(name).replace("_", "").lower() for name in fields}

"""Detect the kind of a Batch AI document from the content, and find the document's fields. Pure."""

from __future__ import annotations

import json
import re
from typing import Any

TOOLKITS = (
    "pyTorchSettings", "tensorFlowSettings", "horovodSettings", "chainerSettings", "cntkSettings", "caffeSettings",
    "caffe2Settings", "customMpiSettings", "customToolkitSettings",
)  # fmt: skip
_OF_JOB = frozenset({*TOOLKITS, "nodeCount", "stdOutErrPathPrefix", "jobPreparation"})
_OF_CLUSTER = frozenset({"vmSize", "vmPriority", "scaleSettings", "nodeSetup", "userAccountSettings"})
_OF_PROJECT = frozenset({"clusterName", "persistCluster", "sourceScript", "monitorFileName", "blobContainerName"})

_SCRIPT = re.compile(r"/([\w-][\w.-]*\.(?:py|sh|cntk|prototxt))\b")

JOB, CLUSTER, PROJECT = "job", "cluster", "project"


def kind_of(content: Any) -> str:
    """job, cluster or project; '' for any other document, such as an Azure ML job.

    An Azure ML job may have `properties` too, but its properties are texts, and it has a `command`.
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
    """The names of a job's scripts, at most ten. A client may upload these scripts with the job."""
    return list(dict.fromkeys(_SCRIPT.findall(json.dumps(content))))[:10]


def _has(fields: dict[str, Any], field_names: frozenset[str]) -> bool:
    return bool(_names(fields) & {name.lower() for name in field_names})


def _names(fields: dict[str, Any]) -> set[str]:
    return {str(name).replace("_", "").lower() for name in fields}

"""Read the project.json of the deep-learning job service: its cluster, storage and script. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from shared.jobs.batchai.fields import Fields
from shared.jobs.batchai.mounts import CLUSTER_ROOT, Mount
from shared.jobs.batchai.report import TranslationReport

DATA_MOUNT = "datalake"  # mount point of the container on the service's clusters; the share used its own name
_UNFILLED = "ENTER_"


@dataclass(frozen=True)
class Project:
    """The settings of a project. '' and 0 mean "not given", which includes fields that are still to be filled in."""

    cluster: str = ""
    persist: bool = False
    experiment: str = ""
    script: str = ""  # the script's path on the node, from the mount root
    max_nodes: int = 0
    mounts: tuple[Mount, ...] = ()


def read_project(content: dict[str, Any], report: TranslationReport, prefix: str = "project") -> Project:
    """Read the project. Fields without an equivalent, and invalid fields, are reported."""
    fields = Fields(content, prefix, report)
    fields.raw("$schema", "nothing: it names the schema")
    cluster, experiment = (
        _filled(fields, "clusterName", "compute"),
        _filled(fields, "experimentName", "experiment_name"),
    )
    script = fields.text("sourceScript", "the script that is sent with the run").rpartition("/")[2]
    folder = fields.text("sourceScriptFileShareDirectory", "where the job finds the script").strip("/")
    share = _filled(fields, "logFileShareName", "the cluster's mount of that name") or "logs"
    container, account = _filled(fields, "blobContainerName", f"the cluster's mount {DATA_MOUNT}"), ""
    fields.text("monitorFileName", "which process's log is shown")
    for key in ("resourceGroup", "workspaceName"):
        fields.changed(key, "Which Batch AI workspace to submit to.", "The deployment that you are logged in to.")
    if "storageAccount" in fields:
        account = _filled(fields, "storageAccount", "the account of the mounts")
    mounts = (
        Mount(CLUSTER_ROOT, share, f"{prefix}.logFileShareName", "share", share, account),
        Mount(CLUSTER_ROOT, DATA_MOUNT, f"{prefix}.blobContainerName", "container", container, account),
    )
    persist = _yes(fields, "persistCluster", report)
    most = fields.whole("maxNodes", "the most nodes that a job of it may ask for", 0)
    fields.finish()
    path = "/".join(part for part in (share, folder, script) if part) if script else ""
    return Project(cluster, persist, experiment, path, most, mounts)


def _filled(fields: Fields, key: str, where: str) -> str:
    text = fields.text(key, where)
    if not text.startswith(_UNFILLED):
        return text
    fields.report.changed(
        fields.at(key), f"It still says {text[:60]}.", "Left open: the value of the command or the route is used."
    )
    return ""


def _yes(fields: Fields, key: str, report: TranslationReport) -> bool:
    """Parse a switch: the project's template has True and False as texts."""
    value = fields.raw(key, "a lease on the cluster")
    if value is None or value == "":
        return False
    if isinstance(value, bool):
        return value
    if str(value).strip().lower() in ("true", "false"):
        return str(value).strip().lower() == "true"
    report.refuse(fields.at(key), 'must be "True" or "False".')
    return False

"""Translate a cluster.json into the equivalent Azure ML compute, and read the mounts of its nodes. Pure."""

from __future__ import annotations

from typing import Any

from shared.jobs.batchai.fields import Fields
from shared.jobs.batchai.mounts import CLUSTER_ROOT, Mounts
from shared.jobs.batchai.report import TranslationReport
from shared.jobs.vm_size import gpus_of, is_size, known
from shared.kernel.names import COMPUTE, COMPUTE_RULE

SCHEMA = "https://azuremlschemas.azureedge.net/latest/amlCompute.schema.json"
IDLE_SECONDS = 120  # until idle nodes are removed; Batch AI removed nodes immediately, Azure ML needs a value
_ANSWERED = (
    "id", "name", "type", "resourceGroup", "creationTime", "allocationState", "allocationStateTransitionTime",
    "currentNodeCount", "errors", "nodeStateCounts", "provisioningState", "provisioningStateTransitionTime",
)  # fmt: skip


def read_node_setup(content: dict[str, Any], mounts: Mounts) -> None:
    """Read only the cluster's mounts, and report the missing parts of the cluster's setup."""
    unused = TranslationReport()
    _, properties = _properties(content, unused, "cluster")
    properties.report = mounts.report
    _node_setup(properties, mounts)


def read_cluster(content: dict[str, Any], name: str = "", account: str = "") -> tuple[dict[str, Any], Mounts]:
    """The compute in the form of `az ml compute create --file`, and the mounts, which also have the report."""
    report = TranslationReport()
    outer, properties = _properties(content, report)
    mounts = Mounts(report, account)
    compute: dict[str, Any] = {"$schema": SCHEMA, "type": "amlcompute", "name": _name(outer, properties, name)}
    compute |= _size(properties) | _scale(properties) | _priority(properties)
    _account(properties)
    _image(properties)
    if subnet := properties.mapping("subnet"):
        compute["network_settings"] = {"subnet": subnet.text("id", "network_settings.subnet", needed=True)}
        subnet.finish()
    _node_setup(properties, mounts)
    for fields in {id(each): each for each in (outer, properties)}.values():
        fields.changed("location", "The region of the cluster.", "The workspace's region.")
        for key in _ANSWERED:
            fields.changed(key, "What the service answered about a cluster.", "Not part of a request.")
        fields.finish()
    return compute, mounts


def _properties(content: dict[str, Any], report: TranslationReport, prefix: str = "") -> tuple[Fields, Fields]:
    """The fields of the cluster; older files have them at the top level."""
    outer = Fields(content, prefix, report)
    outer.raw("$schema", "nothing: it names the schema")
    inner = outer.mapping("properties") if isinstance(content.get("properties"), dict) else None
    return outer, inner or outer


def _name(outer: Fields, properties: Fields, name: str) -> str:
    cluster_name = name or outer.text("name", "name") or properties.text("name", "name")
    if cluster_name and not COMPUTE.fullmatch(cluster_name):
        outer.report.refuse("name", f"is {cluster_name[:80]!r}; {COMPUTE_RULE}.")
    return cluster_name or "batchai-cluster"


def _size(properties: Fields) -> dict[str, Any]:
    size = properties.text("vmSize", "size", needed=True)
    old = known(f"Standard_{size.lower().removeprefix('standard_')}")
    new = known(old.instead) if old else None
    if old is None or new is None:
        if is_size(size) and gpus_of(size) is None:
            properties.changed(
                "vmSize",
                f"{size}, a size that Trainyard does not know.",
                f"{size}; Azure decides whether it is available.",
            )
        return {"size": size}
    lost = " Its InfiniBand has no equivalent there." if old.infiniband and not new.infiniband else ""
    properties.report.lost(
        properties.at("vmSize"), f"{size}: {old}. Azure has retired this size, or is about to.",
        f"{old.instead}: {new}.{lost}", "See whether you have quota for it, and what it costs.",
    )  # fmt: skip
    return {"size": old.instead}


def _scale(properties: Fields) -> dict[str, Any]:
    settings = properties.mapping("scaleSettings")
    if settings is None:
        properties.report.lost(
            properties.at("scaleSettings"), "The number of nodes, which the command line gave.", "From 0 to 1 node.",
            "Set max_instances to the most nodes that a job needs.",
        )  # fmt: skip
        return {"min_instances": 0, "max_instances": 1, "idle_time_before_scale_down": IDLE_SECONDS}
    manual, auto = settings.mapping("manual"), settings.mapping("autoScale")
    if manual and auto:
        settings.report.refuse(settings.path, "must have one of manual and autoScale, not both.")
    least, most = 0, 1
    if auto:
        least = auto.whole("minimumNodeCount", "min_instances", 0, least=0)
        most = auto.whole("maximumNodeCount", "max_instances", 1, least=0)
        auto.changed("initialNodeCount", "Nodes right after creation.", "Nodes are added when a job needs them.")
        if least > most:
            auto.report.refuse(auto.path, f"has minimumNodeCount {least}, which is more than maximumNodeCount {most}.")
        auto.finish()
    if manual:
        most = manual.whole("targetNodeCount", "max_instances", 0, least=0)
        manual.changed(
            "nodeDeallocationOption",
            "What happens to jobs on nodes that are removed.",
            "A node is removed when it is idle.",
        )
        manual.report.lost(
            manual.path, f"{most} nodes, all the time.", f"From 0 to {most} nodes, as jobs need them.",
            "A lease keeps them up for a time: trainyard lease.",
        )  # fmt: skip
        manual.finish()
    settings.finish()
    return {"min_instances": least, "max_instances": most, "idle_time_before_scale_down": IDLE_SECONDS}


def _priority(properties: Fields) -> dict[str, Any]:
    given = properties.text("vmPriority", "tier").lower() or "dedicated"
    if given not in ("dedicated", "lowpriority"):
        properties.report.refuse(properties.at("vmPriority"), f"is {given[:40]!r}; choose dedicated or lowpriority.")
    return {"tier": "low_priority" if given == "lowpriority" else "dedicated"}


def _account(properties: Fields) -> None:
    properties.lost(
        "userAccountSettings", "An administrator on each node, to log in over SSH.",
        "There is no such account, because nobody can log in to the nodes. The password or key is not stored.",
        "If the password is real, stop using it elsewhere. Debug with `trainyard logs`.",
    )  # fmt: skip


def _image(properties: Fields) -> None:
    properties.lost(
        "virtualMachineConfiguration", "The operating system's image of the nodes.",
        "Azure ML's own; jobs run in containers.", "Put what a job needs into its environment.",
    )  # fmt: skip


def _node_setup(properties: Fields, mounts: Mounts) -> None:
    setup = properties.mapping("nodeSetup")
    if setup is None:
        return
    setup.lost(
        "setupTask", "A command that ran as root on each node when it came up.", "It is not run.",
        "Put what it installs into the job's environment, or into jobPreparation.",
    )  # fmt: skip
    setup.lost(
        "performanceCountersSettings", "Counters of the nodes, sent to Application Insights.",
        "Azure Monitor has the workspace's own metrics.", "Make a chart of GpuUtilization there.",
    )  # fmt: skip
    mounts.read(setup.mapping("mountVolumes"), CLUSTER_ROOT)
    setup.finish()

"""Read a job.json of any Batch AI schema version, with its cluster.json and project.json. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from shared.jobs.batchai import mounts
from shared.jobs.batchai.cluster import read_node_setup
from shared.jobs.batchai.fields import Fields
from shared.jobs.batchai.mounts import JOB_ROOT, MountPath, Mounts, MountUse
from shared.jobs.batchai.project import Project, read_project
from shared.jobs.batchai.report import TranslationReport
from shared.jobs.batchai.toolkits import Start, read_toolkit
from shared.jobs.batchai.wall_clock import read_wall_clock

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_RESOURCE = re.compile(r".*/clusters/([^/]+)/?", re.IGNORECASE)
_OLD_CUDA = re.compile(r"cuda-?[5-9](?!\d)", re.IGNORECASE)  # the oldest GPU of Azure today, the T4, needs CUDA 10
_INPUT = re.compile(r"\$(?:\{AZ_BATCHAI_INPUT_([-\w]+)\}|AZ_BATCHAI_INPUT_(\w+))")
LONGEST_NAME = 255  # characters of an experiment's
_SHM = re.compile(r"\d+[bkmgBKMG]?")
_ANSWERED = (  # fields that the service added to its responses: `az batchai job show` prints them with the job
    "id", "name", "type", "resourceGroup", "creationTime", "executionInfo", "executionState",
    "executionStateTransitionTime", "provisioningState", "provisioningStateTransitionTime", "toolType",
    "jobOutputDirectoryPathSegment",
)  # fmt: skip


@dataclass(frozen=True)
class Beside:
    """The context of a job.json: the documents beside it, and the settings from the command line.

    `files` are texts to be placed into mounts. A key is a path from the cluster's mount root, such as
    logs/scripts/train.py, or a plain name, which is placed wherever the job uses a file with this name.
    """

    cluster: dict[str, Any] | None = None
    project: dict[str, Any] | None = None
    account: str = ""
    environment: str = ""
    files: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class BatchAIOutput:
    id: str
    suffix: str


@dataclass
class BatchJob:
    """The requested job, and the report about the translation."""

    report: TranslationReport
    start: Start
    uses: list[MountUse]
    nodes: int = 1
    preparation: str = ""
    inputs: dict[str, str] = field(default_factory=dict)
    outputs: list[BatchAIOutput] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=dict)
    image: str = ""
    shm_size: str = ""
    seconds: int = 0  # time limit; 0 if not given
    cluster: str = ""
    experiment: str = ""
    tags: dict[str, str] = field(default_factory=dict)
    named: list[MountPath] = field(default_factory=list)  # paths into mounts that the job names


def read_job(content: Mapping[str, Any], beside: Beside) -> BatchJob:
    """Read the job. Every field is either used or reported."""
    report = TranslationReport()
    outer = Fields(content, "", report)
    inner = outer.mapping("properties") if isinstance(content.get("properties"), dict) else None
    properties = inner or outer
    outer.raw("$schema", "nothing: it names the schema")
    project = read_project(beside.project, report) if beside.project else Project()
    nodes = properties.whole("nodeCount", "resources.instance_count", 1)
    start = read_toolkit(properties, nodes, report, beside.files.values())
    job = BatchJob(report, start, [], nodes)
    job.tags = _tags(outer)
    _placement(job, outer, properties, project)
    _container(job, properties, beside.environment)
    _limits(job, properties)
    texts = [*start.texts, *_preparation(job, properties), *_variables(job, properties)]
    _secrets(properties, report)
    directories = list(_directories(job, properties))
    job.named = [*mounts.references((name, _with_inputs(text, job.inputs)) for name, text in texts), *directories]
    job.uses = _uses(report, beside, project, properties, job.named)
    for fields in {id(each): each for each in (outer, properties)}.values():
        for key in _ANSWERED:
            fields.changed(key, "What the service answered about a job.", "Not part of a request.")
        fields.finish()
    return job


def _with_inputs(text: str, inputs: dict[str, str]) -> str:
    """The text with the variables of the input directories replaced."""
    return _INPUT.sub(lambda match: inputs.get(match[1] or match[2], match[0]), text)


def _uses(
    report: TranslationReport, beside: Beside, project: Project, properties: Fields, named: list[MountPath]
) -> list[MountUse]:
    job_mounts = Mounts(report, beside.account)
    if beside.cluster is not None:
        read_node_setup(beside.cluster, job_mounts)
    declared = {mount.path for mount in job_mounts.mounted}
    job_mounts.mounted += [mount for mount in project.mounts if mount.path not in declared]
    job_mounts.read(properties.mapping("mountVolumes"), JOB_ROOT)
    return mounts.uses(job_mounts, named)


def _placement(job: BatchJob, outer: Fields, properties: Fields, project: Project) -> None:
    if cluster := properties.mapping("cluster"):
        path = cluster.text("id", "compute")
        match = _RESOURCE.fullmatch(path)
        job.cluster = match[1] if match else path
        cluster.changed("resourceGroup", "The resource group of the cluster.", "The workspace's.")
        cluster.finish()
    job.cluster = job.cluster or project.cluster
    job.experiment = _experiment(job, properties, project)
    for fields in (outer, properties):
        fields.changed("location", "The region of the job.", "The workspace's region.")
    priority = properties.text("schedulingPriority", "nothing: every job has normal").lower()
    number = properties.text("priority", "nothing: every job has 0")
    if priority not in ("", "normal") or number not in ("", "0"):
        job.report.lost(
            properties.at("schedulingPriority" if priority else "priority"), "The job's place in the cluster's queue.",
            "First come, first served.", "Give urgent jobs a cluster of their own.",
        )  # fmt: skip
    if project.max_nodes and job.nodes > project.max_nodes:
        job.report.refuse(
            properties.at("nodeCount"), f"is {job.nodes}; maxNodes of the project is {project.max_nodes}."
        )


def _experiment(job: BatchJob, properties: Fields, project: Project) -> str:
    """The experiment's name, with dashes for characters forbidden in Azure ML."""
    given = properties.text("experimentName", "experiment_name") or project.experiment
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", given).strip("-_")[:LONGEST_NAME]
    if name != given and name:
        where = properties.at("experimentName") if "experimentName" in properties else "project.experimentName"
        job.report.changed(
            where, f"The experiment {given[:80]!r}.", f"{name}: a name may only have letters, digits, - and _."
        )
    return name or given


def _container(job: BatchJob, properties: Fields, environment: str) -> None:
    settings = properties.mapping("containerSettings")
    if settings is None:
        job.report.lost(
            "properties.containerSettings",
            "Without it the job ran on the VM itself, with the software of the VM's image.",
            f"It runs in {environment or 'the environment of the trainers: Python, PyTorch, no other toolkit'}.",
            "" if environment else "Name an environment that has what the job needs, with --environment.",
        )  # fmt: skip
        return
    registry = settings.mapping("imageSourceRegistry")
    if registry is None:
        job.report.refuse(settings.at("imageSourceRegistry"), "is missing: it names the image.")
    else:
        image = registry.text("image", "environment.image", needed=True)
        server = _host(registry.text("serverUrl", "environment.image"))
        job.image = f"{server}/{image}" if server and not image.startswith(f"{server}/") else image
        registry.lost(
            "credentials", "Name and password for a private registry.", "Not used, and not stored.",
            "Let the workspace's identity pull from the registry (role AcrPull), or make an environment of the image.",
        )  # fmt: skip
        registry.finish()
        _image(job, registry.at("image"), environment)
    size = settings.text("shmSize", "resources.shm_size").strip()
    if size and not _SHM.fullmatch(size):
        job.report.lost(settings.at("shmSize"), "The size of /dev/shm.", "Azure ML's own.", "Write it like 2g.")
    elif size:
        job.shm_size = size if size[-1:].isalpha() else f"{size}b"
    settings.finish()


def _host(url: str) -> str:
    """The registry in an address, without a user's name and password, and without the path."""
    return url.partition("://")[2 if "://" in url else 0].partition("?")[0].rpartition("@")[2].strip("/")


def _image(job: BatchJob, field: str, environment: str) -> None:
    """Keep the image, except for a PyTorch too old for today's GPUs: then use the trainers' environment."""
    meant, old = "The image that the job runs in.", bool(_OLD_CUDA.search(job.image))
    if environment:
        job.report.changed(field, meant, f"It runs in {environment}, as requested.")
    elif old and "pytorch" in job.image:
        job.image = ""
        job.report.lost(
            field, f"{meant} Its CUDA is older than today's GPUs.",
            "It runs in the environment of the trainers, with today's PyTorch.",
            "Check whether the script runs with it; --environment IMAGE keeps an image.",
        )  # fmt: skip
    elif old:
        job.report.lost(
            field, f"{meant} Its CUDA is older than today's GPUs.", "The same image. It will not find a GPU.",
            "Name an environment with a newer CUDA, with --environment.",
        )  # fmt: skip
    else:
        job.report.changed(field, meant, "The same image, which must have Python 2.7, or 3.5 or newer, as `python`.")


def _limits(job: BatchJob, properties: Fields) -> None:
    if constraints := properties.mapping("constraints"):
        text = constraints.text("maxWallClockTime", "limits.timeout")
        if text and (seconds := read_wall_clock(text)):
            job.seconds = seconds
        elif text:
            job.report.refuse(
                constraints.at("maxWallClockTime"), f"is {text[:40]!r}; write it like 1.12:00:00 or P1DT12H."
            )
        constraints.finish()


def _preparation(job: BatchJob, properties: Fields) -> Iterator[tuple[str, str]]:
    if fields := properties.mapping("jobPreparation"):
        job.preparation = fields.text("commandLine", "the launcher runs it once on each node", needed=True)
        yield fields.at("commandLine"), job.preparation
        if "horovod" in job.preparation:
            job.report.changed(
                fields.at("commandLine"),
            "It installs Horovod on each node.", "It still does, but nothing needs Horovod now.",
                "Remove that part if it can't be built in the environment: if the preparation fails, the job fails.",
            )  # fmt: skip
        fields.finish()


def _variables(job: BatchJob, properties: Fields) -> Iterator[tuple[str, str]]:
    for item in properties.items("environmentVariables"):
        name, value = (
            item.text("name", "environment_variables", needed=True),
            item.text("value", "environment_variables"),
        )
        if name and (not _VARIABLE.fullmatch(name) or name.startswith("TRAINYARD_")):
            item.report.refuse(item.at("name"), "is not a valid name of a variable.")
        elif name:
            job.variables[name] = value
            yield item.at("value"), value
        item.finish()


def _secrets(properties: Fields, report: TranslationReport) -> None:
    for item in properties.items("secrets"):
        name = item.text("name", needed=True)
        for key in ("value", "valueSecretReference"):
            item.raw(key)
        report.lost(
            item.path, f"The secret variable {name[:60]!r}.",
            "Not set, and not stored: variables of an Azure ML job can be read by everyone in the workspace.",
            "Put it into the workspace's key vault, and have the script read it with the node's identity.",
        )  # fmt: skip
        item.finish()


def _directories(job: BatchJob, properties: Fields) -> Iterator[MountPath]:
    """The named directories, and their paths into mounts."""
    for item in properties.items("inputDirectories"):
        name, path = (
            item.text("id", "AZ_BATCHAI_INPUT_<id>", needed=True),
            item.text("path", "AZ_BATCHAI_INPUT_<id>", needed=True),
        )
        if _is_id(item, name):
            job.inputs[name] = path
        yield from mounts.references([(item.at("path"), path)], written=False)
        item.finish()
    for item in properties.items("outputDirectories"):
        yield from _output(job, item)
    prefix = properties.text("stdOutErrPathPrefix", "AZ_BATCHAI_STDOUTERR_DIR")
    if prefix:
        job.report.changed(
            properties.at("stdOutErrPathPrefix"), "Where the logs were written.", "logs/ in the run's archive."
        )
    yield from mounts.references([(properties.at("stdOutErrPathPrefix"), prefix)], written=True)


def _output(job: BatchJob, item: Fields) -> Iterator[MountPath]:
    name = item.text("id", "outputs", needed=True)
    prefix = item.text("pathPrefix", "a folder of the run's own, in its archive", needed=True)
    suffix = item.text("pathSuffix", "the end of AZ_BATCHAI_OUTPUT_<id>").strip("/")
    item.changed("type", "What the directory holds.", "Nothing depends on it.")
    if item.raw("createNew", "outputs") is False:
        item.report.lost(
            item.at("createNew"), "All jobs wrote into one directory.", "Each run writes into a folder of its own.",
            "Pass the files that a later job needs to it as data.",
        )  # fmt: skip
    if any(part in (".", "..") for part in suffix.split("/")):
        item.report.refuse(item.at("pathSuffix"), "must lead downwards.")
    elif _is_id(item, name):
        if any(output.id == name for output in job.outputs):
            item.report.refuse(item.at("id"), f"is {name!r}, which another output directory also has.")
        job.outputs.append(BatchAIOutput(name, "/".join(part for part in suffix.split("/") if part)))
    yield from mounts.references([(item.at("pathPrefix"), prefix)], written=True)
    item.finish()


def _is_id(item: Fields, name: str) -> bool:
    if name and not re.fullmatch(r"[-\w]{1,64}", name, re.ASCII):
        item.report.refuse(item.at("id"), "must be letters, digits, - and _, at most 64.")
        return False
    return bool(name)


def _tags(outer: Fields) -> dict[str, str]:
    fields = outer.mapping("tags")
    if fields is None:
        return {}
    tags = {name: fields.text(name, "tags") for name in fields.names()}
    fields.finish()
    return tags

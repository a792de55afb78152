"""Any document is read to its end, every field is accounted for, and no secret leaks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from shared.jobs.batchai.cluster import read_cluster
from shared.jobs.batchai.document import TOOLKITS, kind_of
from shared.jobs.batchai.job import Beside
from shared.jobs.batchai.mpirun import parse_command
from shared.jobs.batchai.project import read_project
from shared.jobs.batchai.report import TranslationReport
from tests.batchai.documents import RECIPES, project, retinanet_cluster
from tests.batchai.translating import translated

Json = dict[str, Any]
SECRET = "hunter2-do-not-tell"

PIECES = (
    "$AZ_BATCHAI_MOUNT_ROOT/", "$AZ_BATCHAI_JOB_MOUNT_ROOT/a/b", "mpirun", "-np", "8", "--out_dir", "python x.py",
    "Gloo", "[parameters('x')]", "1.00:00:00", "..", "https://a.file.core.windows.net/s", "", " ", "'", "\\", ";",
)  # fmt: skip
texts = st.lists(st.sampled_from(PIECES) | st.text(max_size=6), max_size=5).map(" ".join)
scalars = st.none() | st.booleans() | st.integers(-3, 9) | st.floats(allow_nan=False, allow_infinity=False) | texts
anything = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2), max_leaves=4
)


def some(fields: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[Json]:
    """A mapping with some of these fields, some with wrong values, and some unknown fields."""
    known = {name: kind | anything if index % 4 == 0 else kind for index, (name, kind) in enumerate(fields.items())}
    return st.builds(
        lambda a, b: {**b, **a}, st.fixed_dictionaries({}, optional=known), st.dictionaries(texts, anything, max_size=1)
    )


secret = st.just(SECRET)
credentials = st.fixed_dictionaries({"accountKey": secret})
share = some({"azureFileUrl": texts, "relativeMountPath": texts, "accountName": texts, "fileMode": texts}).map(
    lambda found: {**found, "credentials": {"accountKey": SECRET}}
)
container = some({"containerName": texts, "relativeMountPath": texts, "mountOptions": texts})
volumes = some(
    {
        "azureFileShares": st.lists(share, max_size=2),
        "azureBlobFileSystems": st.lists(container, max_size=2),
        "fileServers": st.lists(some({"fileServer": anything, "relativeMountPath": texts}), max_size=1),
        "unmanagedFileSystems": st.lists(some({"mountCommand": texts, "relativeMountPath": texts}), max_size=1),
    }
)
TEXTS = ("pythonScriptFilePath", "commandLineArgs", "commandLine", "configFilePath", "pythonInterpreterPath",
         "communicationBackend", "masterCommandLineArgs", "languageType")  # fmt: skip
COUNTS = {
    "processCount": st.integers(-1, 9),
    "workerCount": st.integers(1, 9),
    "parameterServerCount": st.integers(0, 3),
}
toolkit = some({**dict.fromkeys(TEXTS, texts), **COUNTS})
named = st.sampled_from(["MODEL", "model", "a-b", "", "../x"])
properties = some(
    {
        "nodeCount": st.integers(-1, 5),
        "jobPreparation": some({"commandLine": texts}),
        "stdOutErrPathPrefix": texts,
        "containerSettings": some(
            {
                "imageSourceRegistry": some({"image": texts, "serverUrl": texts}).map(
                    lambda found: {**found, "credentials": {"username": "u", "password": SECRET}}
                ),
                "shmSize": texts,
            }
        ),
        "mountVolumes": volumes,
        "inputDirectories": st.lists(some({"id": named, "path": texts}), max_size=2),
        "outputDirectories": st.lists(
            some({"id": named, "pathPrefix": texts, "pathSuffix": texts, "createNew": st.booleans()}), max_size=2
        ),
        "environmentVariables": st.lists(some({"name": texts, "value": texts}), max_size=2),
        "secrets": st.lists(st.fixed_dictionaries({"name": texts, "value": secret}), max_size=2),
        "constraints": some({"maxWallClockTime": texts}),
        "cluster": some({"id": texts}),
        "priority": st.integers(-1000, 1000),
        "schedulingPriority": texts,
    }
)
jobs = st.builds(
    lambda inner, name, settings: {"properties": {**inner, name: settings}},
    properties, st.sampled_from(TOOLKITS), toolkit,
)  # fmt: skip


def leaves(value: Any, path: str = "") -> Iterator[str]:
    if isinstance(value, dict) and value:
        for name, item in value.items():
            yield from leaves(item, f"{path}.{name}".lstrip("."))
    elif isinstance(value, list) and value:
        for index, item in enumerate(value):
            yield from leaves(item, f"{path}[{index}]")
    else:
        yield path


def unaccounted(document: Json, report: TranslationReport, prefix: str = "") -> list[str]:
    """The leaves that are neither in the result nor in the report, alone or with their parent."""
    known = {*report.landed, *(f.field for f in report.findings), *(p.path for p in report.problems)} - {"properties"}
    missed = []
    for leaf in leaves(document, prefix):
        if leaf in ("", prefix, "properties") or leaf.endswith(("[]", "{}")):
            continue
        if not any(leaf == path or leaf.startswith((f"{path}.", f"{path}[")) for path in known):
            missed.append(leaf)
    return missed


def empty(value: Any) -> bool:
    return value in ({}, [], None, "")


@settings(max_examples=150)
@given(jobs)
def test_every_field_of_a_job_lands_or_is_reported(document: Json) -> None:
    """No document makes the importer fail, and each of its fields is in the job or in the report."""
    job, read = translated(document)

    missed = [leaf for leaf in unaccounted(document, read.report) if not empty(_at(document, leaf))]
    assert missed == []
    told = json.dumps(job) + repr(read.report) + read.report.summary()
    assert SECRET not in told


@settings(max_examples=100)
@given(st.sampled_from(sorted(RECIPES)), st.data())
def test_a_recipe_with_a_piece_replaced_is_read(name: str, data: st.DataObject) -> None:
    """Any value in one place of a real document is refused or reported, and never causes an error of ours."""
    document = json.loads(json.dumps(RECIPES[name]))
    paths = sorted(leaf for leaf in leaves(document) if leaf != "$schema")
    path = data.draw(st.sampled_from(paths))
    _replace(document, path, data.draw(anything))

    translated(document, Beside(cluster=retinanet_cluster(), project=project()))


node_counts = {"targetNodeCount": st.integers(-1, 3)}
bounds = {"minimumNodeCount": st.integers(0, 3), "maximumNodeCount": st.integers(0, 3)}
clusters = some(
    {
        "vmSize": texts,
        "vmPriority": texts,
        "subnet": some({"id": texts}),
        "nodeSetup": some({"mountVolumes": volumes, "setupTask": anything}),
        "scaleSettings": some({"manual": some(node_counts), "autoScale": some(bounds)}),
    }
)


@settings(max_examples=60)
@given(clusters)
def test_every_field_of_a_cluster_lands_or_is_reported(inner: Json) -> None:
    """The same holds for a cluster.json."""
    document = {"properties": {**inner, "userAccountSettings": {"adminUserName": "u", "adminUserPassword": SECRET}}}
    compute, mounts = read_cluster(document)

    missed = [leaf for leaf in unaccounted(document, mounts.report) if not empty(_at(document, leaf))]
    assert missed == []
    assert SECRET not in json.dumps(compute) + repr(mounts.report)


@settings(max_examples=60)
@given(st.dictionaries(st.sampled_from([*project(), "other"]), anything), texts, anything)
def test_no_text_is_too_strange(content: Json, line: str, whatever: Any) -> None:
    """Any project is read or refused, any line is parsed or left alone, and any value has a kind or none."""
    report = TranslationReport()
    read_project(content, report, "")
    assert [leaf for leaf in unaccounted(content, report) if not empty(_at(content, leaf))] == []
    parse_command(line)
    parse_command(f"mpirun {line}")
    kind_of(whatever)


def _at(document: Any, path: str) -> Any:
    """The value of a leaf, found by walking the leaves, because names may contain dots."""
    return next(value for leaf, value in _leaf_values(document) if leaf == path)


def _leaf_values(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for name, item in value.items():
            yield from _leaf_values(item, f"{path}.{name}".lstrip("."))
    elif isinstance(value, list) and value:
        for index, item in enumerate(value):
            yield from _leaf_values(item, f"{path}[{index}]")
    else:
        yield path, value


def _replace(document: Any, path: str, new: Any) -> None:
    parts = path.replace("[", ".[").split(".")
    for part in parts[:-1]:
        document = document[int(part[1:-1])] if part.startswith("[") else document[part]
    last = parts[-1]
    document[int(last[1:-1]) if last.startswith("[") else last] = new

"""The job bodies that the app writes itself equal those that azure-ai-ml sends."""

from __future__ import annotations

import contextlib
import uuid
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shared.adapters.azureml import sdk_job
from shared.adapters.azureml.code_assets import environment_body
from shared.adapters.azureml.document import document
from shared.adapters.azureml.job_body import job_body
from shared.adapters.azureml.jobs import AzureMLJobs
from shared.adapters.azureml.workspace import connect, sdk
from shared.adapters.storage.account import StorageClients
from shared.adapters.storage.blobs import StorageBlobs
from shared.jobs.assets import Assets, resolve
from shared.jobs.build import build
from shared.jobs.data import Data
from shared.jobs.location import Asset, Location
from shared.jobs.order import JobOrder
from shared.jobs.routes_file import load
from shared.kernel.index_settings import ROOT
from tests.contract.sides import job_of
from tests.contract.wire import LocalAzureML
from tests.fakes.ports import FakeAssets

pytestmark = pytest.mark.filterwarnings("ignore:.*(marshmallow|context. parameter).*", "ignore::DeprecationWarning")

TRAINERS = ROOT / "trainers"
CODE = (
    "azureml:/subscriptions/0/resourceGroups/r/providers/Microsoft.MachineLearningServices/workspaces/w"
    "/codes/c/versions/1"
)
GIT = ("mlflow.source.git", "azureml.git")  # properties that the SDK adds about the app's folder


def sent_by_the_sdk(azureml: LocalAzureML, job: dict[str, Any]) -> Any:
    """The body of the PUT that azure-ai-ml makes from the job, without the git commit of this folder."""
    connection = connect(azureml.workspace)
    with contextlib.suppress(Exception):  # the local workspace lacks assets of some jobs; only the body counts
        connection.ml.jobs.create_or_update(sdk_job.load(job, connection.arm.workspace_id))
    body = _sent(azureml, "PUT", f"jobs/{job['name']}")
    properties = body["properties"]["properties"]
    body["properties"]["properties"] = {key: properties[key] for key in properties if not key.startswith(GIT)}
    return body


def _sent(azureml: LocalAzureML, method: str, path: str) -> Any:
    found = [r for r in azureml.requests() if r["method"] == method and r["path"].endswith(path)]
    return found[-1]["request"]


def ours(azureml: LocalAzureML, job: dict[str, Any]) -> Any:
    return job_body(job, connect(azureml.workspace).arm.workspace_id)


ROUTES = load(ROOT / "routes.yaml", TRAINERS).routes


@pytest.mark.parametrize("route", sorted(name for name, route in ROUTES.items() if route.trains))
def test_the_jobs_of_our_routes_are_written_as_the_sdk_writes_them(azureml: LocalAzureML, route: str) -> None:
    """The job of every route of the routes file is written without azure-ai-ml, and equals what azure-ai-ml would
    send."""
    found = ROUTES[route]
    data = Data(Location("drops", f"{route}/a/"), single_file=False)
    order = JobOrder(f"r-{route}", "t", found.template, found.limits, found.defaults, data=data, tags={"a": "b"})
    built = build(order).job
    assert built
    job = document(resolve(built, Assets(Asset(CODE.removeprefix("azureml:")), Asset("trainyard:1"), "d")))
    assert ours(azureml, job) == sent_by_the_sdk(azureml, job)


NAMES = st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,8}", fullmatch=True)
TEXTS = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x2FF), min_size=1, max_size=20)
PATHS = st.sampled_from(["azureml://datastores/drops/paths/a/", "azureml://datastores/drops/paths/a/b.zip"])
DATA = st.fixed_dictionaries(
    {"path": PATHS},
    optional={
        "type": st.sampled_from(["uri_folder", "uri_file"]),
        "mode": st.sampled_from(["ro_mount", "rw_mount", "download", "upload", "direct", "nope"]),
    },
)
LITERALS = st.one_of(st.integers(), st.floats(), st.booleans(), TEXTS)
STRINGS = st.dictionaries(NAMES, TEXTS, max_size=2)
CHANGES = st.fixed_dictionaries(
    {},
    optional={
        "description": TEXTS,
        "display_name": TEXTS,
        "command": st.one_of(TEXTS, st.sampled_from(["python ${{inputs.data}} $[[a]]", "cat ${{inputs.data}}\n"])),
        "inputs": st.dictionaries(NAMES, DATA | LITERALS, max_size=3).map(lambda more: {"data": "a", **more}),
        "outputs": st.dictionaries(NAMES, DATA, max_size=2),
        "tags": STRINGS,
        "properties": STRINGS,
        "environment_variables": STRINGS,
        "code": st.sampled_from([CODE, "azureml:c:1"]),
        "environment": st.sampled_from(["azureml:e:1", "azureml:AzureML-e:1", "azureml:e@latest"]),
        "resources": st.sampled_from([1, 4, 9]).map(lambda count: {"instance_count": count}),
        "limits": st.integers(1, 10**7).map(lambda seconds: {"timeout": seconds}),
        "distribution": st.builds(
            lambda kind, n: {"type": kind, "process_count_per_instance": n},
            st.sampled_from(["pytorch", "mpi"]),
            st.integers(1, 9),
        ),
    },
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(CHANGES)
def test_a_body_of_ours_is_the_sdks(azureml: LocalAzureML, change: dict[str, Any]) -> None:
    """Each job body that the app writes equals the body that azure-ai-ml sends for the same job."""
    job = {**job_of(f"j{uuid.uuid4().hex}", "echo"), **change}
    if job["resources"] == {"instance_count": 9}:  # as if it were not set
        del job["resources"]
    body = ours(azureml, job)
    if body is not None:
        assert body == sent_by_the_sdk(azureml, job)


@pytest.mark.parametrize(
    "change",
    [
        {"services": {}},
        {"inputs": {"data": {"path": "azureml://datastores/drops/paths/a/", "mode": "rw_mount"}}},
        {"compute": "azureml:local"},
        {"inputs": {"data": {"path": "azureml:data:1"}}},
        {"command": "echo ${{inputs.nope}}"},
        {"environment": "azureml:e@latest"},
        {"resources": {"instance_count": 1, "shm_size": "2g"}},
        {"distribution": {"type": "tensorflow", "worker_count": 1}},
        {"limits": {"timeout": "60"}},
    ],
)
def test_what_is_unusual_is_left_to_the_sdk(change: dict[str, Any]) -> None:
    """A job with a part that the app does not write is left to azure-ai-ml."""
    assert job_body(job_of("a", "echo"), "/w") is not None
    assert job_body({**job_of("a", "echo"), **change}, "/w") is None


def test_the_trainers_environment_is_written_as_the_sdk_writes_it(
    azureml: LocalAzureML, clients: StorageClients
) -> None:
    """The body that registers the nodes' environment equals what azure-ai-ml sends."""
    file = TRAINERS / "environment.yaml"
    ml = connect(azureml.workspace).ml
    ml.environments.create_or_update(sdk().load_environment(str(file), params_override=[{"version": "by-the-sdk"}]))
    AzureMLJobs(azureml.workspace, FakeAssets(), StorageBlobs(clients.blob)).register_environment(str(file), "0f" * 32)
    assert _sent(azureml, "PUT", "versions/0f0f0f0f0f0f0f0f") == _sent(azureml, "PUT", "versions/by-the-sdk")


def test_an_environment_of_other_parts_is_left_to_the_sdk(tmp_path: Path) -> None:
    """An environment that is built, or that has no conda file, is left to azure-ai-ml."""
    file = tmp_path / "environment.yaml"
    file.write_text("name: e\nbuild: {path: .}\n")
    assert environment_body(file) is None

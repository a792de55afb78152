"""The unmodified MLClient creates, finds and archives data, models, environments, components and code."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceNotFoundError

from emulator_tests.azureml.clouds import Cloud
from emulators.azureml.bodies.asset_body import KINDS

pytestmark = [
    pytest.mark.usefixtures("contract"),
    pytest.mark.filterwarnings("ignore::Warning:azure|marshmallow"),
]
FORMS = ["data", "models", "environments", "components"]


def form(kind: str, name: str, **more: Any) -> Any:
    """An asset without a version, whose content is `content`."""
    from azure.ai.ml import command
    from azure.ai.ml.entities import Data, Environment, Model

    content = more.pop("content", "1")
    path = f"azureml://datastores/drops/paths/{content}/"
    if kind == "data":
        return Data(name=name, path=path, type="uri_folder", **more)
    if kind == "models":
        return Model(name=name, path=path, type="custom_model", **more)
    if kind == "environments":
        return Environment(name=name, image=f"ubuntu:{content}", **more)
    made = command(name=name, command=f"echo {content}", environment="azureml:AzureML-local:1")
    component = made.component
    for key, value in {"name": name, **more}.items():
        setattr(component, key, value)
    return component


@pytest.mark.parametrize("kind", FORMS)
def test_versions_and_labels(ml: Any, kind: str) -> None:
    """An asset without a version gets the next one. get finds each by number and the newest by label, and list
    returns every version."""
    assets = getattr(ml, kind)
    name = f"numbered_{kind}"
    for content in ("1", "2"):
        assets.create_or_update(form(kind, name, content=content, tags={"content": content}))
    found = {a.version: a for a in assets.list(name=name)}
    assert len(found) == 2
    newest = assets.get(name, label="latest")
    assert newest.tags == {"content": "2"}
    assert assets.get(name, version=newest.version).id == newest.id
    assert name in {a.name for a in assets.list()}
    with pytest.raises(ResourceNotFoundError, match="nowhere"):
        assets.get("nowhere", version="1")


@pytest.mark.parametrize("kind", FORMS)
def test_content_never_changes(ml: Any, kind: str) -> None:
    """An existing version accepts another description and tags. Other content is a conflict with a message."""
    assets = getattr(ml, kind)
    name = f"fixed_{kind}"
    assets.create_or_update(form(kind, name, version="7"))
    assets.create_or_update(form(kind, name, version="7", description="better", tags={"a": "b"}))
    assert assets.get(name, version="7").description == "better"
    with pytest.raises(ResourceExistsError, match="choose another version or name"):
        assets.create_or_update(form(kind, name, version="7", content="2"))
    assert assets.get(name, version="7").tags == {"a": "b"}


@pytest.mark.parametrize("kind", FORMS)
def test_archived_versions_and_names_are_out_of_lists(ml: Any, kind: str) -> None:
    """archive removes a version or a whole name from lists and labels, and restore brings it back. get finds
    archived versions, too."""
    assets = getattr(ml, kind)
    name = f"shelved_{kind}"
    for version in ("1", "2"):
        assets.create_or_update(form(kind, name, version=version, content=version))
    assets.archive(name, version="2")
    assert [a.version for a in assets.list(name=name)] == ["1"]
    assert [a.version for a in assets.list(name=name, list_view_type="ArchivedOnly")] == ["2"]
    assert assets.get(name, label="latest").version == "1"
    assets.restore(name, version="2")
    assert {a.version for a in assets.list(name=name)} == {"1", "2"}
    assets.archive(name)
    assert name not in {a.name for a in assets.list()}
    assets.restore(name)
    assert name in {a.name for a in assets.list()}
    assert assets.get(name, version="2").version == "2"


def test_an_environment_without_a_version_keeps_the_one_before(ml: Any) -> None:
    """A different image under a name is the next version. The same image again is the existing version."""
    versions = [ml.environments.create_or_update(form("environments", "grown", content=c)).version for c in "1223"]
    assert versions == ["1", "2", "2", "3"]
    assert ml.environments.get("grown", version="1").image == "ubuntu:1"


def test_local_files_become_data_and_models(ml: Any, tmp_path: Path) -> None:
    """A local file or folder is uploaded once per content. download returns a model's files unchanged."""
    from azure.ai.ml.entities import Data, Model

    (tmp_path / "weights.bin").write_bytes(b"w" * 1000)
    (tmp_path / "card.md").write_text("# A model")
    model = ml.models.create_or_update(Model(name="local-model", path=str(tmp_path), type="custom_model"))
    again = ml.models.create_or_update(Model(name="local-model", path=str(tmp_path), type="custom_model"))
    assert (model.version, again.version) == ("1", "2")
    assert model.path == again.path
    data = ml.data.create_or_update(Data(name="local-file", path=str(tmp_path / "weights.bin"), type="uri_file"))
    assert data.path.endswith("/weights.bin")
    ml.models.download("local-model", version="1", download_path=str(tmp_path / "back"))
    back = tmp_path / "back" / "local-model" / tmp_path.name
    assert {f.name: f.read_bytes() for f in back.iterdir()} == {
        "weights.bin": b"w" * 1000, "card.md": b"# A model"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "properties", "message"),
    [
        ("data", {"dataType": "table", "dataUri": "https://x"}, "choose mltable, uri_file, uri_folder"),
        ("data", {"dataType": "uri_file"}, "'dataUri'"),
        ("models", {"modelUri": "u", "modelType": "onnx"}, "choose custom_model, mlflow_model, triton_model"),
        ("environments", {"image": 5}, "image is 5; it must be a string"),
        ("codes", {"isArchived": "no"}, "it must be true or false"),
    ],
)
def test_bodies_are_checked(cloud: Cloud, kind: str, properties: Any, message: str) -> None:
    """An impossible asset is a 400 with the value and the allowed values."""
    answer = cloud.call("PUT", f"{cloud.workspace}/{kind}/wrong/versions/1", {"properties": properties})
    assert (answer.status_code, message in answer.json()["error"]["message"]) == (400, True), answer.text


@pytest.mark.parametrize("kind", KINDS)
def test_names_are_resources_too(cloud: Cloud, kind: str) -> None:
    """A name can be created before its versions and deleted with them. Lists of names have pages."""
    made = cloud.call(
        "PUT", f"{cloud.workspace}/{kind}/empty", {"properties": {"description": "d", "dataType": "mltable"}}
    )
    assert (made.status_code, made.json()["properties"]["nextVersion"]) == (201, "1")
    assert cloud.arm("GET", f"{kind}/empty")["properties"]["description"] == "d"
    assert cloud.call("DELETE", f"{cloud.workspace}/{kind}/empty").status_code == 200
    assert cloud.call("DELETE", f"{cloud.workspace}/{kind}/empty").status_code == 204
    assert cloud.call("GET", f"{cloud.workspace}/{kind}/empty").status_code == 404


def test_lists_page(cloud: Cloud) -> None:
    """A list of more than one page links to the next page, and has each item once."""
    for number in range(105):
        body = {"properties": {"dataType": "uri_file", "dataUri": f"https://x/{number}"}}
        cloud.arm("PUT", f"data/many/versions/{number}", body)
    first = cloud.arm("GET", "data/many/versions")
    second = cloud.call("GET", first["nextLink"].removeprefix(cloud.url)).json()
    names = [item["name"] for item in first["value"] + second["value"]]
    assert names == [str(number) for number in reversed(range(105))]
    assert "nextLink" not in second
    assert [
        item["name"] for item in cloud.arm("GET", "data/many/versions?$top=2&$orderBy=createdtime desc")["value"]
    ] == ["104", "103"]


def test_assets_survive_a_restart(own_cloud: Callable[..., Cloud]) -> None:
    """Versions, names and archived states survive a restart in the same order."""
    cloud = own_cloud()
    for version in ("b", "a"):
        cloud.arm("PUT", f"models/kept/versions/{version}", {"properties": {"modelUri": f"azureml://x/{version}"}})
    cloud.arm("PUT", "models/kept", {"properties": {"description": "said", "isArchived": True}})
    before = cloud.arm("GET", "models/kept/versions")
    cloud.restart()
    assert cloud.arm("GET", "models/kept/versions") == before
    assert cloud.arm("GET", "models/kept")["properties"]["description"] == "said"
    assert cloud.arm("GET", "models")["value"] == []


def test_a_job_runs_in_a_labeled_environment_of_the_sdk(ml: Any) -> None:
    """`NAME@latest` in a job is the newest version that is not archived."""
    from azure.ai.ml import command

    ml.environments.create_or_update(form("environments", "labeled"))
    job = command(name="labeled-job", command="true", environment="labeled@latest", compute="cpu-cluster")
    assert str(ml.jobs.create_or_update(job).environment).endswith("labeled:1")


def test_anonymous_assets_are_in_no_list(ml: Any) -> None:
    """An anonymous environment works for its job, and is not in the list of names."""
    from azure.ai.ml import command
    from azure.ai.ml.entities import Environment

    job = command(name="nameless", command="true", environment=Environment(image="python:3.11"), compute="cpu-cluster")
    ml.jobs.create_or_update(job)
    assert not any(e.name.startswith("CliV2") for e in ml.environments.list())
    with pytest.raises(HttpResponseError):
        ml.environments.get("CliV2AnonymousEnvironment", version="none")

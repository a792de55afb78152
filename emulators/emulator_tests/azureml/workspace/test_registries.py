"""Registries made from a folder's files, used by the unmodified MLClient and by jobs."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError

from emulator_tests.azureml.clouds import Cloud

pytestmark = pytest.mark.filterwarnings("ignore")  # of experimental classes
FILES = {
    "environments/base.yml": "name: base\nversion: 3\nimage: python:3.11\nconda_file: conda.yml\ntags: {owner: us}\n",
    "environments/conda.yml": "dependencies: [python, pip]\n",
    "data/iris.yml": "name: iris\nversion: 1\ntype: uri_file\npath: ./iris.csv\n",
    "data/iris.csv": "five,1,0\n",
    "models/net.yml": "name: net\nversion: 2\ntype: custom_model\npath: net\n",
    "models/net/weights.txt": "heavy",
    "components/show.yml": """
name: show
version: 1.0.0
type: command
inputs: {rows: {type: uri_file}}
code: ./src
environment: azureml://registries/team/environments/base/versions/3
command: python show.py ${{inputs.rows}}
""",
    "components/say.yml": """
name: say
version: 1
inputs: {rows: {type: uri_file}, net: {type: custom_model}}
environment: {image: "python:3.11"}
command: echo SAID $(cat ${{inputs.rows}} ${{inputs.net}}/weights.txt)
""",
    "components/src/show.py": "import pathlib, sys\nprint('SHOWN', pathlib.Path(sys.argv[1]).read_text().strip())\n",
    "models/broken.yml": "version: 1\n",
}


@pytest.fixture(scope="module")
def folder(cloud: Cloud) -> Path:
    """The files of a registry `team` of the shared cloud, which is already running."""
    made = Path(json.loads(cloud.config.read_text())["state"]) / "registries" / "team"
    for name, text in FILES.items():
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_text(text)
    return made


@pytest.fixture(scope="module")
def team(ml: Any, folder: Path) -> Any:
    """MLClient on the registry `team`."""
    from azure.ai.ml import MLClient

    return MLClient(ml._credential, registry_name="team", **json.loads(os.environ["AML_CLIENT_KWARGS"]))


def test_mlclient_reads_a_registry(team: Any, tmp_path: Path) -> None:
    """Each kind of asset can be listed, and read by version and by label. A model's files can be downloaded."""
    assert (team.environments.get("base", label="latest").version, team.models.get("net", version="2").type) == (
        "3",
        "custom_model",
    )
    assert team.environments.get("base", version="3").conda_file == {"dependencies": ["python", "pip"]}
    assert [asset.version for asset in team.data.list("iris")] == ["1"]
    assert team.components.get("show").command.startswith("python show.py")
    for kind, name in (("environments", "base"), ("models", "net"), ("data", "iris")):
        assert name in [asset.name for asset in getattr(team, kind).list()]
    team.models.download("net", version="2", download_path=tmp_path)
    assert [file.read_text() for file in tmp_path.rglob("*.txt")] == ["heavy"]


def test_microsofts_registry_has_the_curated_environments(ml: Any) -> None:
    """Curated environments are listed. An unlisted environment with a known framework is found, and its image has
    the framework's name."""
    from azure.ai.ml import MLClient

    azureml = MLClient(ml._credential, registry_name="azureml", **json.loads(os.environ["AML_CLIENT_KWARGS"]))
    assert "sklearn-1.5" in [environment.name for environment in azureml.environments.list()]
    assert azureml.environments.get("acpt-pytorch-2.8-cuda12.6", version="9").image.endswith("cuda12.6:9")
    with pytest.raises(ResourceNotFoundError, match="this machine can make those of sklearn"):
        azureml.environments.get("mystery", version="1")


def test_every_workspace_has_the_curated_environments(ml: Any) -> None:
    """Curated environments can be read by label and by any version, under the names that jobs use. An unknown
    environment gets an explanation."""
    newest = ml.environments.get("AzureML-sklearn-1.5", label="latest")
    assert newest.image == ml.environments.get("AzureML-sklearn-1.5", version=newest.version).image
    assert ml.environments.get("AzureML-ACPT-pytorch-2.8", version="9").image.endswith("curated/ACPT-pytorch-2.8:9")
    with pytest.raises(ResourceNotFoundError, match="this machine can make those of sklearn"):
        ml.environments.get("AzureML-mystery", version="1")


def test_a_job_uses_what_registries_have(cloud: Cloud, ml: Any, team: Any) -> None:
    """A component's command runs in the component's environment, with the registry's data and model."""
    from azure.ai.ml import Input, command

    shared, component = "azureml://registries/team", team.components.get("say", version="1")
    rows = Input(type="uri_file", path=f"{shared}/data/iris/labels/latest")
    net = Input(type="custom_model", path=f"{shared}/models/net/versions/2")
    job = command(
        command=component.command,
        environment=component.environment,
        inputs={"rows": rows, "net": net},
        compute="cpu-cluster",
    )
    name = ml.jobs.create_or_update(job).name
    assert cloud.wait(name, timeout=240)["status"] == "Completed"
    assert "SAID five,1,0 heavy" in cloud.log(name)


def test_a_component_is_looked_up_before_a_job_is_sent(cloud: Cloud, team: Any) -> None:
    """Preflight refuses a component that the registry lacks, and an unknown registry. Without a version, the newest
    is used."""
    look = f"/preflight/v1.0{cloud.workspace}/jobs"
    told = {
        "team/components/say/versions/1": "",
        "team/components/say/labels/latest": "",
        "team/components/say": "",
        "team/components/say/versions/7": "No version 7 of 'say' among components of registry 'team'; there are: 1.",
        "azureml/components/download_model": "No version latest of 'download_model' among components of registry",
        "nobody/components/say/versions/1": "There is no registry 'nobody' on this machine",
    }
    for place, why in told.items():
        job = {"component": f"azureml://registries/{place}"}
        refusals = cloud.call("POST", look, {"job": job}).json()["refusals"]
        assert (len(refusals), why in "".join(refusals)) == (bool(why), True), (place, refusals)


def test_a_registrys_code_runs(cloud: Cloud, team: Any) -> None:
    """Resource Manager accepts the id of a registry's code. (MLClient refuses such an id in a job, here and in
    Azure.)"""
    component, rows = team.components.get("show"), "azureml://registries/team/data/iris/versions/1"
    inputs = {"rows": {"jobInputType": "uri_file", "uri": rows}}
    facts = {"environmentId": component.environment, "codeId": component.code, "inputs": inputs}
    cloud.submit("of-a-component", "cpu-cluster", component.command, **facts)
    assert cloud.wait("of-a-component", timeout=240)["status"] == "Completed"
    assert "SHOWN five,1,0" in cloud.log("of-a-component")
    cloud.arm("DELETE", "jobs/of-a-component")  # MLClient can't list it


@pytest.mark.parametrize(
    ("uri", "why"),
    [
        ("azureml://registries/nobody/data/x/versions/1", "no registry 'nobody' on this machine; there are: azureml"),
        ("azureml://registries/team/data/x/versions/1", "No version 1 of 'x' among data of registry 'team'. Not read: "
         "models/broken.yml: It must be a mapping with a name"),
    ],
)  # fmt: skip
def test_what_no_registry_has_is_refused_at_once(cloud: Cloud, folder: Path, uri: str, why: str) -> None:
    """A job with an unknown asset is a 400 with the known registries, or with the registry's unreadable files."""
    body = {
        "jobType": "Command", "command": "true", "computeId": f"{cloud.workspace}/computes/cpu-cluster",
        "environmentId": "azureml:AzureML-minimal:1", "inputs": {"a": {"jobInputType": "uri_folder", "uri": uri}},
    }  # fmt: skip
    answer = cloud.call("PUT", f"{cloud.workspace}/jobs/of-no-registry", {"properties": body})
    assert (answer.status_code, why in answer.json()["error"]["message"]) == (400, True), answer.text


def test_registries_are_read_only(team: Any) -> None:
    """A write to a registry is refused with the path of the registry's files."""
    from azure.ai.ml.entities import Environment

    with pytest.raises(HttpResponseError, match="Writing to registries: not in this stand-in; put the asset's file"):
        team.environments.create_or_update(Environment(name="new", version="1", image="python:3.11"))


def test_a_changed_file_is_taken_in(team: Any, folder: Path) -> None:
    """The next request finds a new version without a restart."""
    (folder / "environments" / "newer.yml").write_text("name: base\nversion: 4\nimage: python:3.12\n")
    assert {environment.version for environment in team.environments.list("base")} == {"3", "4"}

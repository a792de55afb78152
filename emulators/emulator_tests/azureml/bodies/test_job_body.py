"""How a job's body is read, without a server."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from emulators.azureml.bodies import any_job, job_body
from emulators.azureml.kernel.errors import ArmError, BadRequest, DataError
from emulators.azureml.kernel.models import NEXT, TERMINAL, Status, seconds
from emulators.azureml.kernel.sources import AccountBlob, AssetRef, JobOutput, Location, Source, Web, location, source
from emulators.azureml.storage.web_folder import WebFolder
from emulators.azureml.storage.web_inputs import reach

GOOD: dict[str, Any] = {
    "jobType": "Command",
    "command": "python train.py --data ${{inputs.data}} --out ${{ outputs.models }}",
    "codeId": "/subscriptions/s/resourceGroups/r/x/workspaces/w/codes/abc/versions/1",
    "environmentId": "azureml:trainer:3",
    "computeId": "/subscriptions/s/resourceGroups/r/x/workspaces/w/computes/CPU-cluster",
    "inputs": {"data": {"jobInputType": "uri_folder", "uri": "azureml://datastores/drops/paths/a/b/"}},
    "outputs": {"models": {"jobOutputType": "uri_folder"}},
    "resources": {"instanceCount": 2},
    "distribution": {"distributionType": "PyTorch", "processCountPerInstance": 3},
    "limits": {"jobLimitsType": "Command", "timeout": "PT1H30M"},
}


def test_a_good_body_is_read_whole() -> None:
    """References, counts, paths and the timeout are read as values. An output without a path has Azure's default
    path."""
    job = job_body.parse("run-1", GOOD)
    assert job.code == AssetRef("codes", "abc", "1")
    assert (job.environment, job.cluster) == (AssetRef("environments", "trainer", "3"), "cpu-cluster")
    assert (job.nodes, job.distribution.processes, job.world_size, job.timeout) == (2, 3, 6, 5400)
    assert job.inputs[0].source == Location("drops", "a/b/")
    assert job.outputs[0].location == Location("workspaceblobstore", "azureml/run-1/models/")


def test_variables_become_texts() -> None:
    """A number and a boolean become the text that MLClient's job files mean. A null is not a variable."""
    given = {"A": "x", "B": 1, "C": 1.5, "D": True, "E": None}
    assert job_body.parse("run-1", {**GOOD, "environmentVariables": given}).variables == {
        "A": "x",
        "B": "1",
        "C": "1.5",
        "D": "True",
    }


@pytest.mark.parametrize(
    ("output", "place"),
    [
        ({"uri": "azureml://datastores/${{default_datastore}}/paths/a/${{name}}/${{ output_name }}/"}, "a/run-1/out/"),
        ({"jobOutputType": "uri_file"}, "azureml/run-1/out"),
        ({"jobOutputType": "mlflow_model"}, "azureml/run-1/out/"),
    ],
)
def test_an_outputs_place_may_hold_expressions(output: dict[str, str], place: str) -> None:
    """Expressions for the default datastore, the job's name and the output's name are replaced in an output's path.
    A file output has a file name and no folder."""
    job = job_body.parse("run-1", {**GOOD, "command": "true", "outputs": {"out": output}})
    assert job.outputs[0].location == Location("workspaceblobstore", place)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"jobType": "Spark"}, "jobType 'Spark' is not .*: Command, Pipeline and Sweep. Submit a command job whose"),
        ({"jobType": ["Command"]}, r"jobType \['Command'\] is not supported here"),
        ({"command": "  "}, "need a 'command': a non-empty string"),
        ({"command": "run ${{inputs.dta}}"}, r"uses \$\{\{inputs.dta\}\}.*it has: inputs.data, outputs.models"),
        ({"environmentId": None}, "need a 'environmentId'"),
        ({"environmentId": "trainer"}, "environmentId 'trainer' is neither an ARM id"),
        ({"inputs": {"data": {"jobInputType": "uri_folder", "uri": "s3://x/y"}}}, "azureml://datastores/NAME/paths"),
        ({"inputs": {"data": {"jobInputType": "uri_folder", "uri": "https://x/y"}}}, "can be a file only"),
        (
            {"inputs": {"m": {"jobInputType": "uri_file", "uri": "azureml://registries/r/codes/m/versions/1"}}},
            "is one of codes; an input is data or a model",
        ),
        ({"inputs": {"data": {"jobInputType": "tensor"}}}, "jobInputType 'tensor'; choose literal, .*uri_folder"),
        (
            {"outputs": {"models": {"uri": "azureml://datastores/x/paths/${{experiment}}/"}}},
            "its path uses .*experiment.*there are: default_datastore, name, output_name",
        ),
        (
            {"environmentVariables": {"A": [1]}},
            r"environmentVariables.A is \[1\]; write a text, a number, true or false",
        ),
        ({"inputs": []}, "'inputs' must be an object, not list"),
        ({"inputs": {"../../x": {"jobInputType": "literal"}}, "command": "true"}, "inputs '../../x'; use letters"),
        ({"inputs": {"..": None}, "command": "true"}, r"inputs '\.\.'; use letters"),
        ({"outputs": {"/tmp/x": {}}, "command": "true"}, "outputs '/tmp/x'; use letters"),
        (
            {"inputs": {"data": {"jobInputType": "uri_file", "uri": "https://[x/a"}}},
            r"https://\[x/a' is not an address",
        ),
        ({"environmentVariables": {"A=B": "x"}}, "environmentVariables 'A=B'"),
        ({"environmentVariables": {"A": "x\0"}}, "environmentVariables 'A'"),
        ({"distribution": {"distributionType": "Horovod"}}, "'Horovod' is not supported here; supported: PyTorch, Mpi"),
        ({"environmentId": "azureml://registries/mine/models/e/versions/1"}, "registries/REGISTRY/environments/NAME"),
        ({"resources": {"instanceCount": 0}}, "instanceCount is 0; it must be a whole number of at least 1"),
        ({"limits": {"timeout": "1 hour"}}, "limits.timeout: '1 hour' is not an ISO 8601 duration"),
    ],
)
def test_a_bad_body_is_refused_with_what_would_do(change: dict[str, Any], message: str) -> None:
    """Each error has the value and the allowed values."""
    with pytest.raises(BadRequest, match=message):
        any_job.parse("run-1", {**GOOD, **change})


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"tags": {f"t{n}": "" for n in range(51)}}, "RunDto.Tags/Count, Limit=50, Size=51"),
        ({"tags": {"t" * 101: ""}}, "RunDto.Tags.Key/Length, Limit=100, Size=101"),
        ({"tags": {"t": "v" * 1001}}, "RunDto.Tags.Value/Length, Limit=1000, Size=1001"),
        ({"properties": {f"p{n}": "" for n in range(51)}}, "RunDto.Properties/Count, Limit=50, Size=51"),
        ({"properties": {"p": "v" * 1001}}, "RunDto.Properties.Value/Length, Limit=1000, Size=1001"),
        ({"description": "d" * 5001}, "RunDto.Description/Length, Limit=5000, Size=5001"),
    ],
)
def test_what_azure_ml_does_not_store_is_refused_in_its_words(change: dict[str, Any], field: str) -> None:
    """The message is the one in azure-sdk-for-python#35685, with the numbers of Azure's page."""
    with pytest.raises(ArmError) as refused:
        job_body.parse("run-1", {**GOOD, **change})
    assert (refused.value.status, refused.value.code) == (400, "ValidationError")
    assert refused.value.message == (
        f"A field of the entity is over the size limit. FieldName={field}. See "
        "https://aka.ms/azure-machine-learning-limits for service limits documentation."
    )


@pytest.mark.parametrize("name", ["", "a/b", "-a", "a" * 256, "é"])
def test_a_bad_job_name_is_refused(name: str) -> None:
    """Names are letters, digits, '-' and '_', as in Azure ML."""
    with pytest.raises(BadRequest, match="Job name"):
        job_body.parse(name, GOOD)


def test_full_datastore_addresses_are_understood() -> None:
    """The SDK's long address of a datastore and the short address lead to the same place."""
    long = "azureml://subscriptions/s/resourcegroups/r/workspaces/w/datastores/drops/paths/a b/c"
    assert location(long, "x") == Location("drops", "a b/c")


@pytest.mark.parametrize(
    ("text", "value"), [("PT120S", 120), ("PT1H30M", 5400), ("P1D", 86400), ("PT0S", 0), ("PT0.5S", 0.5)]
)
def test_durations(text: str, value: float) -> None:
    """ISO 8601 durations with days, hours, minutes and seconds become seconds."""
    assert seconds(text) == value


def test_every_status_leads_to_an_end() -> None:
    """Each status can reach a terminal status, and a terminal status has no successor."""
    assert {Status.COMPLETED, Status.FAILED, Status.CANCELED} == TERMINAL
    for status in Status:
        reached, frontier = {status}, {status}
        while frontier := {after for s in frontier for after in NEXT[s]} - reached:
            reached |= frontier
        assert reached & TERMINAL


@pytest.mark.parametrize(
    ("uri", "kind", "found"),
    [
        ("azureml:iris:3", "uri_folder", AssetRef("data", "iris", "3")),
        ("azureml:net@latest", "mlflow_model", AssetRef("models", "net", "latest")),
        ("azureml://registries/team/data/iris/versions/3", "uri_file", AssetRef("data", "iris", "3", "team")),
        ("azureml://registries/r/models/net/labels/latest", "uri_folder", AssetRef("models", "net", "latest", "r")),
        ("https://account.blob.core.windows.net/c/data/a/versions/1", "uri_file",
         AccountBlob("account", "c", "data/a/versions/1", "https://account.blob.core.windows.net/c/data/a/versions/1")),
        ("/subscriptions/s/resourceGroups/g/providers/p/workspaces/w/data/iris/versions/3", "mltable",
         AssetRef("data", "iris", "3")),
        ("azureml://subscriptions/s/resourcegroups/g/workspaces/w/models/net/versions/2", "custom_model",
         AssetRef("models", "net", "2")),
        ("azureml://jobs/run-1/outputs/artifacts/paths/outputs/model", "uri_folder",
         JobOutput("run-1", "artifacts", "outputs/model")),
        ("azureml://jobs/run-1/outputs/models", "uri_folder", JobOutput("run-1", "models", "")),
        ("wasbs://data@account.blob.core.windows.net/a/b.csv", "uri_file",
         AccountBlob("account", "data", "a/b.csv", "wasbs://data@account.blob.core.windows.net/a/b.csv")),
        ("abfss://data@lake.dfs.core.windows.net/a/", "uri_folder",
         AccountBlob("lake", "data", "a/", "abfss://data@lake.dfs.core.windows.net/a/")),
        ("https://account.blob.core.windows.net/data/a%20b.csv", "uri_file",
         AccountBlob("account", "data", "a b.csv", "https://account.blob.core.windows.net/data/a%20b.csv")),
        ("https://example.com/a.csv?x=1", "uri_file", Web("https://example.com/a.csv?x=1")),
    ],
)  # fmt: skip
def test_an_input_may_be_written_in_each_of_azures_ways(uri: str, kind: str, found: Source) -> None:
    """Assets by version and by label, outputs of other jobs, storage accounts and web addresses are told apart."""
    assert source(uri, "Input 'x'", kind) == found


def test_a_signature_is_not_shown() -> None:
    """An error shows a web address without its signature."""
    signed = "https://127.0.0.1:9/x.csv?sig=secret"
    with pytest.raises(BadRequest, match=r"9/x\.csv' can be a file only") as folder:
        source(signed, "Input 'a'", "uri_folder")
    with pytest.raises(DataError, match=r"9/x\.csv can't be reached") as file:
        asyncio.run(reach(signed, "Input 'a'", WebFolder(Path("no-such-folder"))))
    assert "secret" not in f"{folder.value}{file.value}"
    for odd in ("http:///x", "http://xn--/x", f"http://{'a' * 300}/x", "http://127.0.0.1:99999/x"):
        with pytest.raises(DataError, match="can't be reached") as file:
            asyncio.run(reach(f"{odd}?sig=secret", "Input 'a'", WebFolder(Path("no-such-folder"))))
        assert "secret" not in str(file.value)

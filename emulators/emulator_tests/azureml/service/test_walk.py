"""Every public method of the unmodified MLClient works, or its error names what is missing."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.core.paging import ItemPaged
from azure.core.polling import LROPoller

from emulator_tests.azureml.clouds import cluster_body

pytestmark = pytest.mark.filterwarnings("ignore")  # of experimental classes

SAMPLES = {"version": "1", "label": "latest", "lines": 5, "delete_dependent_resources": False}
REFUSED = ("not in this stand-in", "is not supported here", "starts and stops its nodes itself")
# Errors that the SDK itself raises before any request, here and in Azure, each with a part of its message.
BY_VERSION = "Must provide either version or label"
OF_THE_SDK = {
    "compute.begin_attach": "Attach compute",
    "capability_hosts.begin_create_or_update": "Workspace kind",
    "data.get": BY_VERSION,
    "data.list_materialization_status": "unexpected keyword argument",  # a fault of 1.35.2
    "data.mount": "no_personal_data_message",  # a fault of 1.35.2 without its extra for mounts
    "datastores.mount": "azureml-dataprep-rslex",
    "environments.get": BY_VERSION,
    "evaluators.get": BY_VERSION,
    "indexes.get": BY_VERSION,
    "jobs.update": "requires at least one of",
    "models.get": BY_VERSION,
    "online_endpoints.begin_delete": "No value for given attribute",
    "online_endpoints.invoke": "expected str, bytes or os.PathLike",
    "components.prepare_for_sign": "has no attribute 'path'",  # of a component without code
    "indexes.build_index": "has no attribute 'model_name'",  # its models are in another package
    "schedules.begin_create_or_update": "Unsupported job type",
    "registries.get": "provide a registry name",
    **dict.fromkeys((f"deployment_templates.{name}" for name in ("archive", "delete", "get", "list", "restore")),
                    "No value for given attribute"),
    "deployment_templates.create_or_update": "must be a DeploymentTemplate",
}  # fmt: skip


# Requests that are refused even for existing objects. All others succeed.
REFUSED_AGAIN = {"compute.begin_start", "compute.begin_stop", "indexes.get", "data.share", "environments.share",
                 "models.share"}  # fmt: skip
OF_WORKSPACES = ("workspaces.", "feature_stores.")  # only one workspace exists, and none is created


def operations(ml: Any) -> Iterator[tuple[str, Any]]:
    """Return `group.method` and the method itself, for every group of MLClient."""
    kind = type(ml)
    for group in sorted(name for name in dir(kind) if isinstance(getattr(kind, name), property)):
        found = getattr(ml, group)
        if type(found).__name__.endswith("Operations"):
            for name in sorted(name for name in dir(found) if not name.startswith("_")):
                if callable(getattr(found, name)):
                    yield f"{group}.{name}", getattr(found, name)


FEATURES = """
$schema: http://azureml/sdk-2-0/FeatureSetSpec.json
source: {type: parquet, path: "wasbs://c@a.blob.core.windows.net/x", timestamp_column: {name: time}}
features: [{name: age, type: string}]
index_columns: [{name: id, type: string}]
"""


def entities(tmp: str) -> dict[str, Any]:
    """Return a valid argument of each kind by parameter name, prefixed with the group's name where groups differ."""
    from azure.ai.ml import command, entities
    from azure.ai.ml.data_transfer import Database

    Path(tmp, "FeatureSetSpec.yaml").write_text(FEATURES)
    image = "python:3.11"
    environment = entities.Environment(name="walked", image=image)
    data = entities.Data(name="walked", path="azureml://datastores/drops/paths/a/", type="uri_folder")
    model = entities.Model(name="walked", path="azureml://datastores/drops/paths/m/", type="custom_model")
    job = command(name="walked", command="true", environment="azureml:AzureML-local:1", compute="walked")
    component = command(name="walked", command="true", environment="azureml:AzureML-local:1").component
    component.name = "walked"
    cluster = entities.AmlCompute(name="walked", size="Standard_D2s_v5", max_instances=0, location="local")
    store = entities.AzureBlobDatastore(name="walked", account_name="devstoreaccount1", container_name="walked")
    recurrence = entities.RecurrenceTrigger(frequency="day", interval=1)
    workspace = entities.Workspace(name="team", location="local", description="other")
    connection = entities.WorkspaceConnection(
        name="walked", type="git", target="https://x", credentials=entities.PatTokenConfiguration(pat="p")
    )
    of_batch = entities.BatchDeployment(name="walked", endpoint_name="walked", model=model, compute="walked")
    of_online = entities.ManagedOnlineDeployment(
        name="walked", endpoint_name="walked", model="azureml:walked:1", instance_type="x", instance_count=1
    )
    return {
        "batch_deployments.deployment": of_batch, "online_deployments.deployment": of_online,
        "batch_endpoints.endpoint": entities.BatchEndpoint(name="walked"),
        "online_endpoints.endpoint": entities.ManagedOnlineEndpoint(name="walked"),
        "serverless_endpoints.endpoint": entities.ServerlessEndpoint(name="walked", model_id="azureml://m"),
        "component": component, "compute": cluster, "data": data, "environment": environment, "model": model,
        "job": job, "datastore": store, "workspace": workspace, "workspace_connection": connection,
        "schedule": entities.JobSchedule(name="walked", trigger=recurrence, create_job=job),
        "registry": entities.Registry(name="walked", location="local", replication_locations=[]),
        "data_import": entities.DataImport(
            name="walked", path=str(data.path), source=Database(query="q", connection="azureml:c")
        ),
        "feature_store": entities.FeatureStore(name="x1"),
        "featureset": entities.FeatureSet(
            name="walked", version="1", entities=[], specification=entities.FeatureSetSpecification(path=tmp)
        ),
        "evaluators.model": entities.Model(
            name="judge", path=str(model.path), properties={"is-promptflow": "true", "is-evaluator": "true"}
        ),
        "index": entities.Index(name="walked", version="1", path=tmp),
        "rule": entities.FqdnDestination(name="walked", destination="example.com"),
        "package_request": entities.ModelPackage(
            target_environment="walked", inferencing_server=entities.AzureMLOnlineInferencingServer()
        ),
        "feature_store_entity": entities.FeatureStoreEntity(name="walked", version="1", index_columns=[]),
        "marketplace_subscription": entities.MarketplaceSubscription(name="walked", model_id="azureml://m"),
    }  # fmt: skip


def arguments(name: str, method: Any, known: dict[str, Any], called: str = "x1") -> dict[str, Any]:
    """Return a value for each required parameter. `called` is the name of the requested object."""
    group, given = name.split(".")[0], dict[str, Any]()
    for parameter in inspect.signature(inspect.unwrap(method)).parameters.values():
        required = parameter.default is parameter.empty and parameter.kind not in (
            parameter.VAR_POSITIONAL,
            parameter.VAR_KEYWORD,
        )
        if not required or parameter.name == "self":
            continue
        default = SAMPLES.get(parameter.name, called)
        given[parameter.name] = known.get(f"{group}.{parameter.name}", known.get(parameter.name, default))
    return given


def outcome(name: str, method: Any, given: dict[str, Any]) -> str:
    """Return `works`, `not found`, `refused`, `of the SDK`, or the error."""
    try:
        answer = method(**given)
        if isinstance(answer, ItemPaged):
            list(answer)
        if isinstance(answer, LROPoller):
            answer.result()
    except ResourceNotFoundError as error:
        return "not found" if "x1" in str(error) and "doesn't serve" not in str(error) else f"obscure: {error}"
    except HttpResponseError as error:
        return "refused" if any(words in str(error) for words in REFUSED) else f"obscure: {error}"
    except Exception as error:  # noqa: BLE001 (whatever it is, is what the test shows)
        words = OF_THE_SDK.get(name)
        return "of the SDK" if words and words in str(error) else f"{type(error).__name__}: {error}"[:300]
    return "works"


def test_every_method_works_or_says_why(
    ml: Any, cloud: Any, storage: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some 160 methods get arguments of the right kind, and each failure has an explanation. A missing object is
    created and requested again."""
    monkeypatch.chdir(tmp_path)  # the folder for downloads
    cloud.arm("PUT", "computes/walked", cluster_body(0))
    storage.get_container_client("drops").upload_blob("m/net.txt", b"heavy", overwrite=True)
    known = entities(str(tmp_path))
    found = {name: outcome(name, method, arguments(name, method, known)) for name, method in operations(ml)}
    fates = ("works", "not found", "refused", "of the SDK")
    obscure = [f"{name}: {said}" for name, said in found.items() if said not in fates]
    assert not obscure, "\n".join(obscure)
    assert len(found) > 150
    assert sum(said == "works" for said in found.values()) > 25
    absent = {name for name, said in found.items() if said == "not found" or OF_THE_SDK.get(name) == BY_VERSION}
    again = {name: outcome(name, method, of_walked(name, method, known)) for name, method in operations(ml)
             if name in absent and not name.startswith(OF_WORKSPACES)}  # fmt: skip
    assert again == {name: "refused" if name in REFUSED_AGAIN else "works" for name in again}
    assert len(again) > 30


def of_walked(name: str, method: Any, known: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments with which the walk finds its own objects."""
    given = arguments(name, method, known, "judge" if name.startswith("evaluators.") else "walked")
    accepted = inspect.signature(inspect.unwrap(method)).parameters
    chosen = {"version": "1", "registry_name": "azureml", "download_path": name}
    return {**given, **{key: value for key, value in chosen.items() if key in accepted}}


@pytest.mark.parametrize("kind", ["component", "environment", "model", "job", "datastore", "compute"])
def test_mlclient_itself_takes_what_its_groups_take(ml: Any, cloud: Any, tmp_path: Path, kind: str) -> None:
    """`create_or_update` and `begin_create_or_update` of the client pass an entity to its group."""
    cloud.arm("PUT", "computes/walked", cluster_body(0))
    entity = entities(str(tmp_path))[kind]
    made = ml.begin_create_or_update(entity).result() if kind == "compute" else ml.create_or_update(entity)
    assert made.name == "walked"

"""infra/ and the code name the same queues, containers, datastores, clusters, settings, filters and triggers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from emulators.arm import declared, deploy
from emulators.eventgrid import config, filters, schema
from local import configs
from local.declaration import Declaration
from shared.adapters.azureml.arm import endpoints
from shared.adapters.azureml.code_assets import CODE_CONTAINER
from shared.jobs.readers.job_status import state_of
from shared.kernel.parsing import BODY_LIMIT
from shared.kernel.places import DROPS_CONTAINER, OUTPUT_CONTAINER
from shared.kernel.settings import SETTINGS, Settings, Storage
from tests.functions import indexed
from tests.infra.declared import INFRA, ROOT, main, parameters

POISON = "-poison"
OF_THE_HOST = {"app-package", "azureml"}  # containers that the platform and the workspace write, not the app


def triggers(kind: str) -> dict[str, str]:
    """Map each function name to the target of its trigger of this kind."""
    found = {}
    for function in indexed.functions():
        trigger = function.get_trigger()
        if trigger is not None and trigger.get_binding_name() == kind:
            found[function.get_function_name()] = getattr(trigger, "queue_name", "")
    return found


def test_every_queue_has_a_trigger_and_every_trigger_a_queue() -> None:
    """The declared queues are exactly the queues of the app's triggers, each with its poison queue."""
    queues = set(declared.storage(main()).queues)
    listened = set(triggers("queueTrigger").values())
    assert queues == {name + end for name in listened for end in ("", POISON)}


def test_every_container_is_declared() -> None:
    """The containers of the app and of Event Grid's dead letters are declared; the workspace's container carries
    its own name."""
    containers = set(declared.storage(main()).containers)
    workspace = next(name for name in containers if name.startswith("azureml-blobstore-"))
    assert containers - OF_THE_HOST - {workspace} == {DROPS_CONTAINER, OUTPUT_CONTAINER, CODE_CONTAINER, "deadletter"}


def test_the_datastore_of_drops_is_the_apps_container() -> None:
    """The drops datastore is the container that uploads go to; jobs and templates name no other datastore of ours."""
    stores = declared.datastores(main())
    assert stores == {"drops": DROPS_CONTAINER}
    source = "\n".join(path.read_text() for path in [*ROOT.glob("trainers/*/job.yaml"), *ROOT.glob("shared/**/*.py")])
    named = set(re.findall(r"azureml://datastores/([a-z_]+)/", source))
    assert named - {"workspaceblobstore", "workspaceartifactstore"} <= stores.keys()


def test_every_routes_cluster_is_declared() -> None:
    """The deployed routes file names only declared clusters."""
    routes = yaml.safe_load((ROOT / "routes.yaml").read_text())["routes"]
    clusters = {cluster["name"]: cluster for cluster in declared.clusters(main())}
    assert {route["cluster"] for route in routes.values() if "cluster" in route} <= clusters.keys()
    assert all(cluster["min_instances"] == 0 for cluster in clusters.values())
    assert all(cluster["tier"] == "low_priority" for cluster in clusters.values())


@pytest.mark.parametrize("auth", ["keys", "entra"])
def test_the_declared_settings_start_the_app(auth: str) -> None:
    """The settings that Azure gives the app are enough to start it, and the app knows each of its own settings
    among them."""
    given = declared.app_settings(main(auth))
    settings = Settings.from_env(given)
    assert settings.workspace.name == main(auth).outputs["AZURE_WORKSPACE_NAME"]
    assert settings.storage == Storage.of_account(main(auth).outputs["AZURE_STORAGE_ACCOUNT_NAME"])
    assert endpoints(settings.workspace.client_kwargs) == ("https://management.azure.com", "https://ml.azure.com")
    assert settings.topic is not None
    ours = {key for key in given if key.startswith(("TRAINYARD_", "AML_"))}
    assert ours <= SETTINGS.keys()


def test_every_declared_setting_is_described() -> None:
    """Each setting that infra/ gives the app is in docs/settings.md with its reason."""
    page = (ROOT / "docs" / "settings.md").read_text()
    assert [key for key in declared.app_settings(main()) if f"`{key}`" not in page] == []


def test_no_setting_switches_authentication_on_by_hand() -> None:
    """Only the platform reports that its authentication is on; a setting made by hand would let forged callers in."""
    assert "WEBSITE_AUTH_ENABLED" not in declared.app_settings(main("entra"))


def test_direct_event_triggers_are_off() -> None:
    """Events arrive by queue, so every trigger that Event Grid could call directly is off."""
    given = declared.app_settings(main())
    off = {key.split(".")[1] for key, value in given.items() if key.endswith(".Disabled") and value == "true"}
    assert off == triggers("eventGridTrigger").keys()


def test_what_may_be_always_ready_is_a_function() -> None:
    """The always-ready instance for submissions is off by default; when on, it names a real function."""

    def ready(count: str) -> list[dict[str, object]]:
        given = parameters(TRAINYARD_SUBMISSIONS_ALWAYS_READY=count)
        site = deploy.deploy(INFRA / "main.bicep", given).one("Microsoft.Web/sites")
        found: list[dict[str, object]] = site.properties["functionAppConfig"]["scaleAndConcurrency"]["alwaysReady"]
        return found

    assert ready("0") == []
    (one,) = ready("2")
    assert one["instanceCount"] == 2
    assert triggers("queueTrigger")[str(one["name"]).removeprefix("function:")] == "submissions"


def test_the_health_of_the_app_needs_no_login() -> None:
    """With Entra ID every path needs a login, except the paths that docs/security.md leaves open to anyone."""
    page = (ROOT / "docs" / "security.md").read_text()
    (anyone,) = re.findall(r"^\| anyone \| (.+) \|$", page, re.MULTILINE)
    open_to_all = [f"/api/{route}" for route in re.findall(r"`GET ([^`]+)`", anyone)]
    found = [r for r in main("entra").of("Microsoft.Web/sites/config") if r.last_name == "authsettingsV2"]
    settings = found[0].properties
    assert settings["platform"] == {"enabled": True}
    rules = settings["globalValidation"]
    assert rules["unauthenticatedClientAction"] == "Return401"
    # Only the page that explains how to sign in. Below granted/ the app checks a token itself.
    entrance = {"/api/page/{*path}": ["/api/page", "/api/page/style.css"]}
    found_open = [path for route in open_to_all for path in entrance.get(route, [route])]
    assert rules["excludedPaths"] == [*found_open, "/api/granted/*"]
    assert open_to_all


def test_the_local_event_grid_takes_what_is_declared() -> None:
    """The local Event Grid accepts every declared topic and subscription."""
    storage = {"connection_string": "x", "access_log": "x"}
    given = configs.eventgrid(Path("home"), storage, Declaration(INFRA), "key", 1.0)
    read = config.read(given)
    assert {s.name: s.target for s in read.subscriptions} == {
        name: config.QueueTarget(name) for name in ("drop-events", "job-events")
    }
    assert {s.dead_letter_container for s in read.subscriptions} == {"deadletter"}
    assert {(s.policy.max_attempts, s.policy.ttl_seconds) for s in read.subscriptions} == {(30, 86400)}


@pytest.mark.parametrize(
    ("name", "kind", "subject", "api", "passes"),
    [
        ("drop-events", "Microsoft.Storage.BlobCreated", "containers/drops/blobs/mnist/a/1.bin", "PutBlockList", True),
        ("drop-events", "Microsoft.Storage.BlobCreated", "containers/drops/blobs/mnist/a/1.bin", "CreateFile", False),
        ("drop-events", "Microsoft.Storage.BlobRenamed", "containers/drops/blobs/mnist/a/2.bin", "RenameFile", True),
        ("drop-events", "Microsoft.Storage.BlobCreated", "containers/output/blobs/mnist/a", "PutBlob", False),
        ("drop-events", "Microsoft.Storage.BlobCreated", "containers/drops2/blobs/mnist/a", "PutBlob", False),
        ("drop-events", "Microsoft.Storage.BlobDeleted", "containers/drops/blobs/mnist/a", "DeleteBlob", False),
        ("job-events", "Microsoft.MachineLearningServices.RunCompleted", "experiments/1/runs/2", "", True),
        ("job-events", "Microsoft.MachineLearningServices.ModelRegistered", "models/1", "", False),
    ],
)
def test_filters_let_through_what_the_app_wants(name: str, kind: str, subject: str, api: str, passes: bool) -> None:
    """Uploads into drops and ends of runs pass the filters; empty files, other containers, deletions and models do
    not."""
    declared_filter = next(s["filter"] for s in declared.subscriptions(main()) if s["name"] == name)
    full = f"/blobServices/default/{subject}" if "containers" in subject else subject
    event = schema.Event("/t", "/t", "1", kind, full, "2026-01-01T00:00:00Z", {"api": api})
    assert filters.read(declared_filter).matches(event) is passes


def test_a_status_that_changes_nothing_of_a_run_raises_no_event() -> None:
    """Each state of a run has a status that raises an event, and unknown statuses raise one; other statuses of the
    same state raise none."""
    declared_filter = next(s["filter"] for s in declared.subscriptions(main()) if s["name"] == "job-events")
    kind = "Microsoft.MachineLearningServices.RunStatusChanged"

    def passes(status: str) -> bool:
        data = {"runId": "2", "runStatus": status}
        event = schema.Event("/t", "/t", "1", kind, "experiments/1/runs/2", "2026-01-01T00:00:00Z", data)
        return filters.read(declared_filter).matches(event)

    told = ["Queued", "Running", "Completed", "Failed", "Canceled", "NotResponding", "completed", "Something"]
    quiet = ["NotStarted", "Provisioning", "Preparing", "Starting", "Finalizing", "CancelRequested"]
    assert [status for status in [*told, *quiet] if passes(status)] == told
    assert {state_of(status) for status in quiet} < {state_of(status) for status in told}


def test_nothing_holds_a_key() -> None:
    """Keys are off wherever Azure allows it: storage, topics, telemetry, registry, cluster, deployment."""
    found = main()
    account = found.one("Microsoft.Storage/storageAccounts").properties
    assert (account["allowSharedKeyAccess"], account["allowBlobPublicAccess"]) == (False, False)
    assert found.one("Microsoft.EventGrid/topics").properties["disableLocalAuth"] is True
    assert found.one("Microsoft.Insights/components").properties["DisableLocalAuth"] is True
    assert found.one("Microsoft.ContainerRegistry/registries").properties["adminUserEnabled"] is False
    assert found.one("Microsoft.MachineLearningServices/workspaces/computes").properties["disableLocalAuth"] is True
    policies = found.of("Microsoft.Web/sites/basicPublishingCredentialsPolicies")
    assert [policy.properties for policy in policies] == [{"allow": False}]


def test_no_output_holds_a_secret() -> None:
    """No output, which azd keeps in a file, comes from a function that reads keys or from a connection string."""
    for file in INFRA.rglob("*.bicep"):
        text = file.read_text()
        assert not re.search(r"\blist[A-Z]\w*\(|getSecret\(", text), file
        outputs = "\n".join(line for line in text.splitlines() if line.startswith("output "))
        assert "ConnectionString" not in outputs, file


def test_the_workspace_shares_the_apps_account() -> None:
    """Archives are copied inside one account, so the workspace's default storage is the app's."""
    account = main().one("Microsoft.Storage/storageAccounts")
    workspace = main().one("Microsoft.MachineLearningServices/workspaces")
    assert workspace.properties["storageAccount"] == account.id
    assert workspace.properties["systemDatastoresAuthMode"] == "Identity"
    assert "enablePurgeProtection" not in main().one("Microsoft.KeyVault/vaults").properties


@pytest.mark.parametrize(
    ("cloud", "apps", "login"),
    [
        ("AzureCloud", "azurewebsites.net", "https://login.microsoftonline.com/"),
        ("AzureUSGovernment", "azurewebsites.us", "https://login.microsoftonline.us/"),
        ("AzureChinaCloud", "chinacloudsites.cn", "https://login.chinacloudapi.cn/"),
    ],
)
def test_every_cloud_has_its_own_addresses(cloud: str, apps: str, login: str) -> None:
    """In each cloud, files are open only to the page at the app's own address, and tokens come from that cloud's
    sign-in."""
    deployment = deploy.deploy(INFRA / "main.bicep", parameters(), cloud=cloud)
    site = deployment.one("Microsoft.Web/sites").last_name
    assert [rule["allowedOrigins"] for rule in declared.cors(deployment)] == [[f"https://{site}.{apps}"]]
    settings = declared.app_settings(deployment)
    assert settings["AZURE_AUTHORITY_HOST"] == login
    assert cloud in settings["AML_CLIENT_KWARGS"]


def test_the_app_explains_its_own_limit() -> None:
    """The host's limit for a body, which gives an empty 500, is far above the app's, which gives a reason."""
    limit = int(declared.app_settings(main())["FUNCTIONS_REQUEST_BODY_SIZE_LIMIT"])
    assert limit >= 16 * BODY_LIMIT

"""A second `azd up` keeps manual settings, and reports what Azure will not change."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from emulators.arm import declared, deploy
from emulators.arm.refusals import refusals
from emulators.arm.resources import Resource
from shared.kernel.settings import SETTINGS
from tests.infra.azd import GONE, READY, Answers, Azd, lines
from tests.infra.declared import INFRA, main, parameters

TOPICS = "Microsoft.EventGrid/systemTopics"
COMPUTES = "Microsoft.MachineLearningServices/workspaces/computes"
# The laptop's connection string, the account's short name in the public cloud only, and what azd asks for itself.
NOT_CHOSEN = {"AzureWebJobsStorage", "AzureWebJobsStorage__accountName"}


def again(before: deploy.Deployment, **environment: str) -> deploy.Deployment:
    """Run another `azd up` over the existing deployment, with these values in azd's environment."""
    return deploy.deploy(INFRA / "main.bicep", parameters(**environment), before=before)


def with_settings(deployment: deploy.Deployment, **changes: str) -> deploy.Deployment:
    """The deployment after someone changed the app's settings by hand."""
    (settings,) = [r for r in deployment.of("Microsoft.Web/sites/config") if r.last_name == "appsettings"]
    changed = replace(settings, body={**settings.body, "properties": {**settings.properties, **changes}})
    return replace(deployment, resources={**deployment.resources, settings.id.lower(): changed})


def test_settings_made_by_hand_survive() -> None:
    """Resource Manager writes the settings as one collection, which includes those set in the portal."""
    by_hand = {
        "TRAINYARD_SMTP_URL": "@Microsoft.KeyVault(SecretUri=x)",
        "TRAINYARD_SCALING_DRY_RUN": "true",
        "MY_OWN": "1",
    }
    settings = declared.app_settings(again(with_settings(main(), **by_hand)))
    assert by_hand.items() <= settings.items()
    assert settings.keys() == declared.app_settings(main()).keys() | by_hand.keys()


def test_the_azd_environment_wins_over_a_setting_made_by_hand() -> None:
    """A chosen value replaces the present one, a default replaces none, and a computed value replaces any."""
    before = with_settings(
        main(),
        TRAINYARD_LEASE_MAX_HOURS="2",
        TRAINYARD_REGION="northeurope",
        TRAINYARD_AUTH="none",
        AML_WORKSPACE="other",
    )
    settings = declared.app_settings(again(before, TRAINYARD_LEASE_MAX_HOURS="48"))
    assert settings["TRAINYARD_LEASE_MAX_HOURS"] == "48"
    assert settings["TRAINYARD_REGION"] == "northeurope"
    assert settings["TRAINYARD_AUTH"] == "keys"
    assert settings["AML_WORKSPACE"] == main().outputs["AZURE_WORKSPACE_NAME"]


@pytest.mark.parametrize("name", sorted(SETTINGS.keys() - NOT_CHOSEN))
def test_every_setting_can_be_set(name: str) -> None:
    """`azd env set` reaches each setting of docs/settings.md, except those that infra/ computes."""
    value = "entra" if name == "TRAINYARD_AUTH" else "chosen"
    settings = declared.app_settings(again(main(), **{name: value, "TRAINYARD_ENTRA_CLIENT_ID": "client"}))
    computed = name.startswith(("AzureWebJobsStorage__", "AML_"))
    assert (name in declared.app_settings(main())) if computed else (settings[name] == value)


def test_a_cluster_keeps_its_size() -> None:
    """Azure reports success but keeps the nodes' size and priority, and the emulation does the same."""
    after = again(main(), TRAINYARD_CLUSTER_VM_SIZE="Standard_NC4as_T4_v3", TRAINYARD_CLUSTER_MAX_NODES="9")
    inner = after.one(COMPUTES).properties["properties"]
    assert inner["vmSize"] == "Standard_D2s_v3"
    assert inner["scaleSettings"]["maxNodeCount"] == 9


def cluster_of(size: str) -> Answers:
    return [("/computes/cpu-cluster", {"properties": {"properties": {"vmSize": size}}}), *READY]


def test_another_size_is_refused_with_the_way_to_get_it(azd: Azd) -> None:
    """The hook compares the requested size with the cluster's, and explains how to get a cluster of another size."""
    azd.set(TRAINYARD_CLUSTER_VM_SIZE="Standard_DS4_v2", TRAINYARD_CLUSTER_MAX_NODES="1")
    done, _ = azd.hook("preprovision", cluster_of("STANDARD_D2S_V3"))
    assert done.returncode == 1
    assert "The cluster cpu-cluster has nodes of STANDARD_D2S_V3" in done.stderr
    assert "az ml compute delete --name cpu-cluster" in done.stderr
    assert "azd env set TRAINYARD_CLUSTER_VM_SIZE STANDARD_D2S_V3" in done.stderr


def test_the_same_size_in_another_spelling_is_the_same(azd: Azd) -> None:
    """Azure returns in capitals a size that was requested in lower case."""
    done, _ = azd.hook("preprovision", cluster_of("STANDARD_D2S_V3"))
    assert done.returncode == 0, done.stderr


def of_defender() -> deploy.Deployment:
    """An environment where Defender's malware scan already made a system topic on the storage account."""
    (ours,) = [topic for topic in main().of(TOPICS) if topic.properties["source"] == main().one(declared.ACCOUNT).id]
    scan = Resource(ours.kind, ours.api_version, "scan", ours.id.rpartition("/")[0] + "/scan", dict(ours.body))
    return replace(main(), resources={scan.id.lower(): scan})


def test_a_second_topic_of_one_source_is_refused_in_azures_words() -> None:
    """Azure allows one system topic per source."""
    (refusal,) = refusals(again(of_defender()))
    assert refusal.startswith("InvalidRequest: There is an existing tracked system topic /subscriptions/")
    assert refusal.endswith("Only one system topic is allowed per source.")


def test_the_topic_that_is_there_is_used(azd: Azd) -> None:
    """The hook finds and remembers Defender's topic, and the template adds its subscription to that topic."""
    azd.set(AZURE_ENV_NAME="local", AZURE_LOCATION="local", AZURE_SUBSCRIPTION_ID=main().subscription)
    topic = of_defender().one(TOPICS)
    listed: Any = {"value": [{"name": topic.name, "properties": {"source": topic.properties["source"].upper()}}]}
    done, _ = azd.hook("preprovision", [("systemTopics", listed), *location("local"), *READY])
    assert done.returncode == 0, done.stderr
    assert azd.values["TRAINYARD_STORAGE_TOPIC"] == "scan"
    after = again(of_defender(), TRAINYARD_STORAGE_TOPIC="scan")
    assert refusals(after) == []
    assert "scan/drop-events" in {found.name for found in after.of(declared.SUBSCRIPTIONS)}


def location(name: str) -> Answers:
    answers = dict(READY)
    place = next(part for part in answers if part.endswith("/vmSizes"))
    there = place.replace("westeurope", name).replace("/sub/", f"/{main().subscription}/")
    return [
        ("list-flexconsumption-locations", [{"name": name}]),
        (there, answers[place]),
        (there.replace("vmSizes", "usages"), answers[place.replace("vmSizes", "usages")]),
    ]


def test_a_refused_budget_does_not_end_the_deployment(azd: Azd) -> None:
    """A subscription without Cost Management gets its role and everything else, and a warning."""
    why = "ERROR: (BadRequest) Cost Management supports only Enterprise Agreement, Web direct and Microsoft Customer"
    role = {"properties": {"outputs": {"clusterRoleId": {"value": "role-1"}}}}
    done, calls = azd.hook("preprovision", [("monthlyBudget=100", why), ("monthlyBudget=0", role), *READY])
    assert done.returncode == 0, done.stderr
    assert "Azure refused the budget" in done.stdout
    assert "Cost Management supports only" in done.stdout
    assert azd.values["TRAINYARD_CLUSTER_ROLE_ID"] == "role-1"
    assert sum("deployment sub create" in line for line in lines(calls)) == 2


def test_a_refused_role_ends_it(azd: Azd) -> None:
    """A refused role ends the deployment with the error, because nothing works without the role."""
    done, _ = azd.hook("preprovision", [("deployment sub create", "ERROR: (AuthorizationFailed) no Owner"), *READY])
    assert done.returncode == 1
    assert "AuthorizationFailed" in done.stderr


def test_without_a_budget_none_is_declared() -> None:
    """TRAINYARD_MONTHLY_BUDGET=0 deploys only the role."""
    given = {"environmentName": "local", "budgetStart": "2026-11-01", "monthlyBudget": 0}
    deployed = deploy.deploy(INFRA / "subscription.bicep", given)
    assert deployed.of("Microsoft.Consumption/budgets") == []
    assert deployed.outputs["clusterRoleId"]


def test_a_registration_from_elsewhere_is_left_alone(azd: Azd) -> None:
    """With TRAINYARD_ENTRA_CLIENT_ID given, a principal without rights on Microsoft Graph can deploy."""
    azd.set(TRAINYARD_AUTH="entra", TRAINYARD_ENTRA_CLIENT_ID="theirs")
    no_rights: Answers = [
        ("ad app", "ERROR: Authorization_RequestDenied"),
        ("graph.microsoft", "ERROR: denied"),
        *READY,
    ]
    done, _ = azd.hook("preprovision", no_rights)
    assert done.returncode == 0, done.stderr
    assert azd.values["TRAINYARD_ENTRA_CLIENT_ID"] == "theirs"
    azd.provisioned()
    done, calls = azd.hook("postprovision", no_rights)
    assert done.returncode == 0, done.stderr
    assert "must allow the redirect URI https://func-1.azurewebsites.net/.auth/login/aad/callback" in done.stdout
    assert not any("graph.microsoft" in line for line in lines(calls))


NOT_YET = (
    "ERROR: You do not have the required permissions needed to perform this operation. Depending on your operation, "
    "you may need to be assigned one of the following roles"  # the Azure CLI's message, Azure/azure-cli#20170
)


def test_the_new_roles_are_waited_for(azd: Azd) -> None:
    """The hook waits until storage honours the new roles; earlier, the upload of the package would fail with 403."""
    azd.provisioned()
    done, calls = azd.hook("postprovision", [("storage blob list", {"then": [NOT_YET, NOT_YET, []]}), *READY])
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Waiting until the new roles are in force") == 1
    assert sum("storage blob list" in line for line in lines(calls)) == 3


def test_a_role_that_is_still_assigned_is_removed_later(azd: Azd) -> None:
    """Azure keeps a custom role until the assignments of the deleted resource group are gone."""
    azd.set(TRAINYARD_CLUSTER_ROLE_ID="role-1")
    in_use = "ERROR: (RoleDefinitionHasAssignments) There are existing role assignments referencing role"
    done, calls = azd.hook("postdown", [("roleDefinitions", {"then": [in_use, in_use, {}]}), *READY])
    assert done.returncode == 0, done.stderr
    assert sum("roleDefinitions" in line for line in lines(calls)) == 3


def test_a_next_page_is_asked_for_by_the_token_that_azure_gave(azd: Azd) -> None:
    """A nextLink's token arrives URL-encoded and az encodes it again, so the hook decodes it first."""
    place = "https://management.azure.com/subscriptions/sub/vmSizes"
    first: Any = {"value": [], "nextLink": f"{place}?api-version=1&$skiptoken=a%2Bb%3D"}
    sizes = dict(READY)[next(part for part, _ in READY if part.endswith("/vmSizes"))]
    answers: Answers = [("/vmSizes --uri-parameters api-version=2024-04-01", first), (place, sizes), *READY]
    done, calls = azd.hook("preflight", answers)
    assert done.returncode == 0, done.stderr
    assert any("api-version=1 $skiptoken=a+b=" in line for line in lines(calls))


def test_nothing_there_yet_is_no_fault(azd: Azd) -> None:
    """The first `azd up` finds neither a cluster nor a topic, and continues."""
    done, _ = azd.hook("preprovision", [("systemTopics", GONE), ("/computes/", GONE), *READY])
    assert done.returncode == 0, done.stderr
    assert azd.values["TRAINYARD_STORAGE_TOPIC"] == ""

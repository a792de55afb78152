"""azd's hooks, run as azd runs them: their calls of Azure, and the values they keep."""

from __future__ import annotations

import ast
import importlib
import json
import sys
from datetime import UTC, datetime
from typing import Any

import pytest

from emulators.arm import syntax
from emulators.arm.hashes import unique_string
from shared.kernel.operation import ROLES
from tests.infra.azd import GONE, OUTPUTS, READY, REGISTRY, Answers, Azd, lines
from tests.infra.declared import INFRA, main

THIS_MONTH = datetime.now(UTC).strftime("%Y-%m-01")


def bodies(calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [call["body"] for call in calls if "body" in call]


def test_outputs_are_the_templates() -> None:
    """After a provision, the environment of these tests has exactly the outputs of main.bicep."""
    assert OUTPUTS.keys() | {"AZURE_LOCATION"} == main().outputs.keys()


def test_a_whole_life(azd: Azd) -> None:
    """With only azd's own values, up, down and up again succeed, and down leaves nothing of ours."""
    first, _ = azd.hook("preprovision", READY)
    assert first.returncode == 0, first.stderr
    azd.provisioned()
    for name in ("postprovision", "predown"):
        done, _ = azd.hook(name, [("--method get", GONE), *READY])
        assert done.returncode == 0, done.stderr
    azd.destroyed()
    done, calls = azd.hook("postdown", [("deletedVaults", {"then": [{}, {}, GONE]}), *READY])
    assert done.returncode == 0, done.stderr
    asked = "\n".join(lines(calls))
    for gone in ("budgets/trainyard-test", "roleDefinitions/role-1", "/purge"):
        assert gone in asked
    again, _ = azd.hook("preprovision", READY)
    assert again.returncode == 0, again.stderr


def test_role_and_budget_come_before_the_rest(azd: Azd) -> None:
    """The role and the budget are deployed in azd's subscription, and the role is remembered; no registration is
    made."""
    done, calls = azd.hook("preprovision", READY)
    assert done.returncode == 0, done.stderr
    (deployed,) = [line for line in lines(calls) if "deployment sub create" in line]
    assert f"budgetStart={THIS_MONTH}" in deployed
    assert deployed.endswith("--subscription sub --output json")
    assert azd.values["TRAINYARD_CLUSTER_ROLE_ID"] == "role-1"
    assert not any(line.startswith("ad app") for line in lines(calls)), "keys need no app registration"


@pytest.mark.parametrize(
    ("began", "removed"),
    [("", False), (THIS_MONTH, False), (f"{THIS_MONTH}T00:00:00Z", False), ("2025-03-01T00:00:00Z", True)],
)
def test_a_budget_of_another_month_is_made_anew(azd: Azd, began: str, removed: bool) -> None:
    """Azure accepts neither a new start for a budget nor a start in an earlier month, so an old budget is removed
    first.

    The test runs a month later, and after `azd down`, when there is no budget.
    """
    there: Any = {"properties": {"timePeriod": {"startDate": began}}} if began else GONE
    done, calls = azd.hook("preprovision", [("--method delete", {}), ("budgets", there), *READY])
    assert done.returncode == 0, done.stderr
    told = lines(calls)
    deletions = [index for index, line in enumerate(told) if "--method delete" in line and "budgets/" in line]
    creation = next(index for index, line in enumerate(told) if "deployment sub create" in line)
    assert [index < creation for index in deletions] == ([True] if removed else [])
    assert f"budgetStart={THIS_MONTH}" in told[creation]
    assert "TRAINYARD_BUDGET_START" not in azd.values


def test_az_errors_are_passed_on(azd: Azd) -> None:
    """The Azure CLI's error message is passed to the caller."""
    done, _ = azd.hook("preprovision", [("provider list", "ERROR: AuthorizationFailed"), *READY])
    assert (done.returncode, "AuthorizationFailed" in done.stderr) == (1, True)


@pytest.mark.parametrize("kind", ["user", "servicePrincipal"])
def test_entra_makes_a_registration_without_a_secret(azd: Azd, kind: str) -> None:
    """TRAINYARD_AUTH=entra makes all app roles, requires assignment, and adds no credential; the signed-in person
    becomes a coder.

    azd doesn't tell a hook who is signed in, so the hook asks.
    """
    azd.set(TRAINYARD_AUTH="entra")
    who: Answers = [
        ("account show", {"name": "s", "user": {"name": "app-id", "type": kind}}),
        ("ad sp show --id app-id", {"id": "me"}),
    ]
    done, calls = azd.hook("preprovision", [*who, *READY])
    assert done.returncode == 0, done.stderr
    sent = [body for body in bodies(calls) if "nameAvailable" not in body and "type" not in body]
    roles = {role["value"]: role["id"] for role in sent[0]["appRoles"]}
    assert roles.keys() == set(ROLES)
    assert sent[0]["identifierUris"] == ["api://client-1"]
    assert {"appRoleAssignmentRequired": True} in sent
    assert {"principalId": "me", "resourceId": "principal-1", "appRoleId": roles["trainyard.coder"]} in sent
    assert azd.values["TRAINYARD_ENTRA_CLIENT_ID"] == "client-1"
    told = json.dumps(calls).lower()
    assert "credential" not in told
    assert "password" not in told


def test_a_new_registration_is_waited_for(azd: Azd) -> None:
    """A new registration may not be found yet, so the hook asks again; any other refusal ends the hook."""
    azd.set(TRAINYARD_AUTH="entra")
    late: Answers = [("applications(appId=", {"then": ["ERROR: Request_ResourceNotFound", {}]}), *READY]
    done, calls = azd.hook("preprovision", late)
    assert done.returncode == 0, done.stderr
    assert sum("applications(appId=" in line for line in lines(calls)) == 3
    refused: Answers = [("applications(appId=", "ERROR: Authorization_RequestDenied"), *READY]
    done, calls = azd.hook("preprovision", refused)
    assert "Authorization_RequestDenied" in done.stderr
    assert sum("applications(appId=" in line for line in lines(calls)) == 1


def test_a_registration_that_is_there_is_mended_not_repeated(azd: Azd) -> None:
    """The second run creates neither app, principal nor grant again, and roles keep their ids."""
    azd.set(TRAINYARD_AUTH="entra")
    _, first = azd.hook("preprovision", READY)
    roles = next(body["appRoles"] for body in bodies(first) if "appRoles" in body)
    answers: Answers = [
        ("ad app list", [{"appId": "client-1", "displayName": "Trainyard (test)"}]),
        ("ad sp list", [{"id": "principal-1"}]),
        ("appRoleAssignedTo", {"value": [{"principalId": "me", "appRoleId": roles[2]["id"]}]}),
        *READY,
    ]
    done, second = azd.hook("preprovision", answers)
    assert done.returncode == 0, done.stderr
    assert not [line for line in lines(second) if "create --" in line and line.startswith("ad ")]
    assert not [body for body in bodies(second) if "resourceId" in body]
    assert roles == next(body["appRoles"] for body in bodies(second) if "appRoles" in body)


def after_provision(azd: Azd, answers: Answers) -> list[dict[str, Any]]:
    azd.provisioned()
    done, calls = azd.hook("postprovision", [*answers, *READY])
    assert done.returncode == 0, done.stderr
    return calls


def test_the_image_is_built_once_for_each_content(azd: Azd) -> None:
    """An image whose tag exists is not built again; either way its full name is remembered."""
    calls = after_provision(azd, [])
    name = azd.values["TRAINYARD_IMAGE"]
    registry, _, tag = name.partition("/trainyard:")
    assert registry == "cr1.azurecr.io"
    (built,) = [line for line in lines(calls) if line.startswith("acr build")]
    assert f"--image trainyard:{tag} " in built

    calls = after_provision(azd, [("acr repository list", ["trainyard"]), ("show-tags", [tag])])
    assert not any(line.startswith("acr build") for line in lines(calls))
    assert azd.values["TRAINYARD_IMAGE"] == name


def test_the_vm_size_decides_which_image_is_built(azd: Azd) -> None:
    """A cluster with GPUs gets the image with CUDA's PyTorch; Azure ML builds the other image if a job needs it."""
    after_provision(azd, [])
    assert azd.values["TRAINYARD_GPU_IMAGE"] == ""
    azd.set(TRAINYARD_CLUSTER_VM_SIZE="Standard_NC4as_T4_v3")
    calls = after_provision(azd, [])
    assert azd.values["TRAINYARD_IMAGE"] == ""
    assert azd.values["TRAINYARD_GPU_IMAGE"].startswith("cr1.azurecr.io/trainyard-gpu:")
    assert [line for line in lines(calls) if line.startswith("acr build") and "--image trainyard-gpu:" in line]


PAUSED: Answers = [
    ("acr build", "ERROR: (TasksOperationsNotAllowed) ACR Tasks requests for the registry are not permitted.")
]


def test_where_acr_tasks_are_paused_docker_builds(azd: Azd) -> None:
    """Free credits may not build in the registry, so this machine's Docker builds the image, with the same result."""
    azd.install("docker")
    calls = after_provision(azd, PAUSED)
    name = azd.values["TRAINYARD_IMAGE"]
    assert name.startswith("cr1.azurecr.io/trainyard:")
    docker = [" ".join(call["argv"]) for call in calls if call["program"] == "docker"]
    assert docker[0].startswith(f"build --platform linux/amd64 --tag {name} ")
    assert docker[1:] == [f"push {name}"]


def test_without_docker_azure_ml_builds(azd: Azd) -> None:
    """Without registry build and Docker, no image is named: the package keeps its conda file, and the workspace
    builds on its cluster. The nodes get no AcrPush, which would let a training replace everyone's image, so the
    hook prints the command."""
    azd.provisioned()
    done, calls = azd.hook("postprovision", [*PAUSED, *READY])
    assert done.returncode == 0, done.stderr
    assert "az role assignment create --role AcrPush --assignee-object-id nodes " in done.stdout
    assert not [line for line in lines(calls) if line.startswith("role assignment create")]
    assert azd.values["TRAINYARD_IMAGE"] == ""
    assert {"properties": {"imageBuildCompute": "cpu-cluster"}} in bodies(calls)


def test_another_refusal_of_the_build_ends_it(azd: Azd) -> None:
    """Only the known refusal leads to another way to build; any other build error is passed on."""
    azd.provisioned()
    done, _ = azd.hook("postprovision", [("acr build", "ERROR: the Dockerfile is wrong"), *READY])
    assert (done.returncode, "the Dockerfile is wrong" in done.stderr) == (1, True)


@pytest.mark.parametrize(
    ("there", "answer", "made"),
    [
        ([{"principalId": "nodes"}], {}, False),
        ([], {}, True),
        ([], "ERROR: (RoleAssignmentExists) The role assignment already exists.", True),
    ],
)
def test_nodes_may_pull_whoever_granted_it(azd: Azd, there: list[Any], answer: Any, made: bool) -> None:
    """AcrPull is granted only if Azure ML has not granted it, and both orders succeed."""
    answers: Answers = [("role assignment list", there), ("role assignment create", answer)]
    calls = after_provision(azd, answers)
    grants = [line for line in lines(calls) if line.startswith("role assignment create")]
    assert len(grants) == made
    assert all(f"--scope {REGISTRY['id']} --assignee-object-id nodes" in line for line in grants)


def test_browsers_may_sign_in_at_the_apps_address(azd: Azd) -> None:
    """With Entra ID the registration gets the app's callback and issues id tokens, still without a secret."""
    azd.set(TRAINYARD_ENTRA_CLIENT_ID="client-1", TRAINYARD_ENTRA_MADE_HERE="client-1")
    web = next(body["web"] for body in bodies(after_provision(azd, [])) if "web" in body)
    assert web["redirectUris"] == ["https://func-1.azurewebsites.net/.auth/login/aad/callback"]
    assert web["implicitGrantSettings"] == {"enableIdTokenIssuance": True}


def test_down_deletes_the_workspace_for_good(azd: Azd) -> None:
    """`down` purges an existing workspace and waits for it; a missing workspace is fine."""
    assert azd.hook("predown", [])[1] == []
    azd.provisioned()
    done, calls = azd.hook("predown", [("--method get", GONE)])
    assert (done.returncode, len(calls)) == (0, 1), done.stderr

    there: Answers = [("--method get", {"then": [{}, GONE]}), ("--method delete", {})]
    done, calls = azd.hook("predown", there)
    assert done.returncode == 0, done.stderr
    asked = [line for line in lines(calls) if "--method delete" in line]
    assert len(asked) == 1
    assert "workspaces/mlw-1 --uri-parameters api-version=2024-04-01 forceToPurge=true" in asked[0]


def test_down_removes_budget_and_role(azd: Azd) -> None:
    """`down` also removes the resources of subscription.bicep, whose absence is no error, and frees the vault's
    name."""
    azd.set(TRAINYARD_CLUSTER_ROLE_ID="role-1")
    answers: Answers = [("deletedVaults", {"then": [{}, {}, GONE]}), ("budgets", GONE), ("roleDefinitions", {})]
    done, calls = azd.hook("postdown", answers)
    assert done.returncode == 0, done.stderr
    places = [line.split()[4].rpartition("/")[2] for line in lines(calls)]
    vault = "kv-" + unique_string("/subscriptions/sub", "test", "westeurope")
    assert places == ["trainyard-test", "role-1", vault, "purge", vault]


def test_names_are_those_of_the_template(monkeypatch: pytest.MonkeyPatch) -> None:
    """The names that hooks compute equal the names in main.bicep."""
    monkeypatch.syspath_prepend(str(INFRA / "hooks"))
    names = importlib.import_module("names")
    found = main()
    for subscription, environment in ((found.subscription, "local"), ("x" * 36, "Grüße")):
        parts = (f"/subscriptions/{subscription}", environment, "local")
        assert names.unique_string(*parts) == unique_string(*parts)
    place = {"AZURE_ENV_NAME": "local", "AZURE_LOCATION": "local", "AZURE_SUBSCRIPTION_ID": found.subscription}
    for name, value in place.items():
        monkeypatch.setenv(name, value)
    assert names.global_names() == {kind: found.one(kind).name for kind in names.global_names()}


def test_every_provider_of_the_bicep_is_registered() -> None:
    """The preflight's providers are those of the resources in infra/, plus the one that Flex Consumption needs."""
    tree = ast.parse((INFRA / "hooks" / "preflight.py").read_text())
    assigned = {n.targets[0].id: n.value for n in tree.body if isinstance(n, ast.Assign)}  # type: ignore[attr-defined]
    listed = ast.literal_eval(assigned["PROVIDERS"])
    files = [syntax.read(path) for path in INFRA.rglob("*.bicep")]
    used = {r.kind.partition("/")[0].lower() for file in files for r in file.resources.values()}
    assert used | {"microsoft.app"} == {name.lower() for name in listed}


def test_no_hook_prints_or_remembers_a_secret() -> None:
    """No hook asks Azure for a key, a password or a token."""
    text = "\n".join(file.read_text() for file in INFRA.glob("hooks/*.py"))
    assert not [word for word in ("credential reset", "keys list", "listKeys", "get-access-token") if word in text]


def test_hooks_need_nothing_installed() -> None:
    """A hook imports only the standard library and other hooks, because it runs before anything is installed."""
    files = list(INFRA.glob("hooks/*.py"))
    known = sys.stdlib_module_names | {file.stem for file in files}
    for file in files:
        nodes = [
            node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Import | ast.ImportFrom)
        ]
        names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
        names += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
        assert [name for name in names if name.partition(".")[0] not in known] == [], file.name

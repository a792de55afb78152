"""azd's hooks, run as azd runs them, against an `az` that answers from a script and writes down what it was asked."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from emulators.arm import syntax
from functions import access
from tests.infra.declared import INFRA

PLACE = "/subscriptions/sub/providers/Microsoft.MachineLearningServices/locations/westeurope"
STAND_IN = """#!{python}
import json, pathlib, sys
folder = pathlib.Path({folder!r})
arguments = sys.argv[1:]
told = {{"argv": arguments}}
if "--body" in arguments:
    told["body"] = json.loads(pathlib.Path(arguments[arguments.index("--body") + 1][1:]).read_text())
with (folder / "calls").open("a") as calls:
    calls.write(json.dumps(told) + "\\n")
line = " ".join(arguments)
seen = [json.loads(call)["argv"] for call in (folder / "calls").read_text().splitlines()]
for part, answer in json.loads((folder / "answers").read_text()):
    if part in line:
        if isinstance(answer, dict) and "then" in answer:  # one answer after the other, the last one again and again
            asked = sum(part in " ".join(argv) for argv in seen)
            answer = answer["then"][min(asked, len(answer["then"])) - 1]
        if isinstance(answer, str):
            sys.exit(answer)
        print(json.dumps(answer))
        break
"""
Answers = list[tuple[str, Any]]
READY: Answers = [
    ("provider list", [{"namespace": "Microsoft.Storage", "registrationState": "Registered"}]),
    ("list-flexconsumption-locations", [{"name": "West Europe"}, {"name": "North Europe"}]),
    (f"{PLACE}/vmSizes", {"value": [{"name": "Standard_D2s_v5", "vCPUs": 2, "lowPriorityCapable": True}]}),
    (f"{PLACE}/usages", {"value": [{"name": {"value": "TotalLowPriorityCores"}, "limit": 8, "currentValue": 0}]}),
    ("deployment sub create", {"properties": {"outputs": {"clusterRoleId": {"value": "role-1"}}}}),
    ("cloud show", {"endpoints": {"microsoftGraphResourceId": "https://graph.microsoft.com/"}}),
    ("ad app list", []),
    ("ad app create", {"appId": "client-1", "displayName": "Trainyard (test)"}),
    ("ad sp list", []),
    ("ad sp create", {"id": "principal-1"}),
    ("appRoleAssignedTo", {"value": []}),
]
Hook = Callable[..., tuple[subprocess.CompletedProcess[str], list[dict[str, Any]]]]


@pytest.fixture
def hook(tmp_path: Path) -> Hook:
    """Runs a hook with these answers and settings; gives the process and az's calls."""
    for name in ("az", "azd"):
        file = tmp_path / name
        file.write_text(STAND_IN.format(python=sys.executable, folder=str(tmp_path)))
        file.chmod(0o755)

    def run(name: str, answers: Answers, **settings: str) -> tuple[Any, list[dict[str, Any]]]:
        (tmp_path / "answers").write_text(json.dumps(answers))
        (tmp_path / "calls").write_text("")
        known = {"AZURE_ENV_NAME": "test", "AZURE_LOCATION": "westeurope", "AZURE_SUBSCRIPTION_ID": "sub"}
        env = {
            **known,
            **settings,
            "TRAINYARD_PAUSE_SECONDS": "0.01",
            "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
        }
        argv = [sys.executable, str(INFRA / "hooks" / f"{name}.py")]
        done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60)
        calls = [json.loads(line) for line in (tmp_path / "calls").read_text().splitlines()]
        return done, calls

    return run


def lines(calls: list[dict[str, Any]]) -> list[str]:
    return [" ".join(call["argv"]) for call in calls]


def test_what_is_not_registered_is_registered(hook: Hook) -> None:
    """Every provider but the registered ones is registered; role and budget are deployed, and the role remembered."""
    done, calls = hook("preprovision", READY)
    assert done.returncode == 0, done.stderr
    registered = {line.split()[3] for line in lines(calls) if line.startswith("provider register")}
    assert "Microsoft.Storage" not in registered
    assert {"Microsoft.EventGrid", "Microsoft.MachineLearningServices", "Microsoft.Web"} <= registered
    assert "env set TRAINYARD_CLUSTER_ROLE_ID role-1" in lines(calls)
    assert not any(line.startswith("ad ") for line in lines(calls)), "keys need no app registration"


def test_the_budget_keeps_its_first_month(hook: Hook) -> None:
    """A second deployment gives the start that the first one remembered: Azure refuses to move it."""
    done, calls = hook("preprovision", READY, TRAINYARD_BUDGET_START="2025-03-01")
    assert done.returncode == 0, done.stderr
    assert any("budgetStart=2025-03-01" in line for line in lines(calls))


def test_the_preflight_says_which_quota_is_short(hook: Hook) -> None:
    """Too few low-priority cores end the deployment before it begins, with the numbers and what to do."""
    done, calls = hook("preprovision", READY, TRAINYARD_CLUSTER_MAX_NODES="5")
    assert done.returncode == 1
    assert "Low-priority cores of Azure ML in westeurope: 5 x Standard_D2s_v5 need 10, free are 8" in done.stderr
    assert "TRAINYARD_CLUSTER_MAX_NODES" in done.stderr
    assert not any("deployment" in line for line in lines(calls))


def test_the_preflight_names_every_fault_at_once(hook: Hook) -> None:
    """A region without Flex Consumption and a size that Azure ML lacks are both told."""
    answers: Answers = [("list-flexconsumption-locations", [{"name": "North Europe"}]), *READY]
    done, _ = hook("preprovision", answers, TRAINYARD_CLUSTER_VM_SIZE="Standard_X")
    assert "Flex Consumption is not in region westeurope" in done.stderr
    assert "northeurope" in done.stderr
    assert "Azure ML has no VM size Standard_X in westeurope" in done.stderr


def test_az_errors_are_passed_on(hook: Hook) -> None:
    """What the Azure CLI says of its failure is what the caller reads."""
    done, _ = hook("preprovision", [("provider list", "ERROR: Please run 'az login'")])
    assert (done.returncode, "Please run 'az login'" in done.stderr) == (1, True)


def test_entra_makes_a_registration_without_a_secret(hook: Hook) -> None:
    """With TRAINYARD_AUTH=entra: all app roles, assignment required, the deployer a coder, no credential."""
    done, calls = hook("preprovision", READY, TRAINYARD_AUTH="entra", AZURE_PRINCIPAL_ID="me")
    assert done.returncode == 0, done.stderr
    bodies = [call["body"] for call in calls if "body" in call]
    roles = {role["value"]: role["id"] for role in bodies[0]["appRoles"]}
    assert roles.keys() == {access.READER, access.CONTRIBUTOR, access.CODER}
    assert bodies[0]["identifierUris"] == ["api://client-1"]
    assert {"appRoleAssignmentRequired": True} in bodies
    grant = {"principalId": "me", "resourceId": "principal-1", "appRoleId": roles["trainyard.coder"]}
    assert grant in bodies
    assert "env set TRAINYARD_ENTRA_CLIENT_ID client-1" in lines(calls)
    told = json.dumps(calls).lower()
    assert "credential" not in told
    assert "password" not in told


def test_a_new_registration_is_waited_for(hook: Hook) -> None:
    """What was made a moment ago may not be found yet: the hook asks again, and any other refusal ends it."""
    late: Answers = [("applications(appId=", {"then": ["ERROR: Request_ResourceNotFound", {}]}), *READY]
    done, calls = hook("preprovision", late, TRAINYARD_AUTH="entra")
    assert done.returncode == 0, done.stderr
    assert sum("applications(appId=" in line for line in lines(calls)) == 3
    refused: Answers = [("applications(appId=", "ERROR: Authorization_RequestDenied"), *READY]
    done, calls = hook("preprovision", refused, TRAINYARD_AUTH="entra")
    assert "Authorization_RequestDenied" in done.stderr
    assert sum("applications(appId=" in line for line in lines(calls)) == 1


def test_a_registration_that_is_there_is_mended_not_repeated(hook: Hook) -> None:
    """The second time neither app, nor principal, nor grant is made again, and roles keep their ids."""
    _, first = hook("preprovision", READY, TRAINYARD_AUTH="entra", AZURE_PRINCIPAL_ID="me")
    roles = next(call["body"]["appRoles"] for call in first if "appRoles" in call.get("body", {}))
    granted = [{"principalId": "me", "appRoleId": roles[2]["id"]}]
    answers: Answers = [
        ("ad app list", [{"appId": "client-1", "displayName": "Trainyard (test)"}]),
        ("ad sp list", [{"id": "principal-1"}]),
        ("appRoleAssignedTo", {"value": granted}),
        *READY,
    ]
    done, second = hook("preprovision", answers, TRAINYARD_AUTH="entra", AZURE_PRINCIPAL_ID="me")
    assert done.returncode == 0, done.stderr
    assert not [line for line in lines(second) if "create --" in line and line.startswith("ad ")]
    assert not [call for call in second if "resourceId" in call.get("body", {})]
    assert roles == next(call["body"]["appRoles"] for call in second if "appRoles" in call.get("body", {}))


def test_the_image_is_built_once_for_each_content(hook: Hook) -> None:
    """An image whose tag is there is not built again; either way its full name is remembered."""
    registry = ("acr show", {"loginServer": "cr1.azurecr.io"})
    none: Answers = [("show-tags", "repository trainyard is not found"), registry]
    done, calls = hook("postprovision", none, AZURE_REGISTRY_NAME="cr1")
    assert done.returncode == 0, done.stderr
    remembered = next(line for line in lines(calls) if "TRAINYARD_IMAGE" in line)
    tag = remembered.rpartition(":")[2]
    assert remembered == f"env set TRAINYARD_IMAGE cr1.azurecr.io/trainyard:{tag}"
    assert any(line.startswith("acr build") and f"trainyard:{tag}" in line for line in lines(calls))

    done, calls = hook("postprovision", [("show-tags", [tag]), registry], AZURE_REGISTRY_NAME="cr1")
    assert done.returncode == 0, done.stderr
    assert not any(line.startswith("acr build") for line in lines(calls))
    assert remembered in lines(calls)


def test_browsers_may_sign_in_at_the_apps_address(hook: Hook) -> None:
    """With Entra ID the registration gets the app's callback and gives id tokens, still without a secret."""
    registry: Answers = [("acr show", {"loginServer": "cr1.azurecr.io"}), *READY]
    settings = {"TRAINYARD_ENTRA_CLIENT_ID": "client-1", "TRAINYARD_URL": "https://func-1.azurewebsites.net/api"}
    done, calls = hook("postprovision", [("show-tags", []), *registry], AZURE_REGISTRY_NAME="cr1", **settings)
    assert done.returncode == 0, done.stderr
    web = next(call["body"]["web"] for call in calls if "web" in call.get("body", {}))
    assert web["redirectUris"] == ["https://func-1.azurewebsites.net/.auth/login/aad/callback"]
    assert web["implicitGrantSettings"] == {"enableIdTokenIssuance": True}


def test_down_deletes_the_workspace_for_good(hook: Hook) -> None:
    """A workspace that is there is purged, and waited for; one that is gone, or never was, is fine."""
    settings = {"AZURE_WORKSPACE_NAME": "mlw", "AZURE_RESOURCE_GROUP": "rg"}
    gone = "ERROR: (ResourceNotFound) could not be found"
    done, calls = hook("predown", [("--method get", gone)], **settings)
    assert (done.returncode, len(calls)) == (0, 1), done.stderr
    assert hook("predown", [])[1] == []

    there: Answers = [("--method get", {"then": [{}, gone]}), ("--method delete", {})]
    done, calls = hook("predown", there, **settings)
    assert done.returncode == 0, done.stderr
    asked = [line for line in lines(calls) if "--method delete" in line]
    assert len(asked) == 1
    assert "workspaces/mlw --uri-parameters api-version=2024-04-01 forceToPurge=true" in asked[0]


def test_down_removes_budget_and_role(hook: Hook) -> None:
    """What subscription.bicep made goes too, and its absence is no error."""
    answers: Answers = [("budgets", "ERROR: NotFound"), ("roleDefinitions", {})]
    done, calls = hook("postdown", answers, TRAINYARD_CLUSTER_ROLE_ID="role-1")
    assert done.returncode == 0, done.stderr
    assert [line.split()[4].rpartition("/")[2] for line in lines(calls)] == [
        "trainyard-test",
        "role-1",
    ]


def test_every_provider_of_the_bicep_is_registered() -> None:
    """The preflight's list of providers is exactly that of the resources in infra/."""
    tree = ast.parse((INFRA / "hooks" / "preflight.py").read_text())
    assigned = {n.targets[0].id: n.value for n in tree.body if isinstance(n, ast.Assign)}  # type: ignore[attr-defined]
    listed = ast.literal_eval(assigned["PROVIDERS"])
    files = [syntax.read(path) for path in INFRA.rglob("*.bicep")]
    used = {r.kind.partition("/")[0].lower() for file in files for r in file.resources.values()}
    assert used == {name.lower() for name in listed}


def test_no_hook_prints_or_remembers_a_secret() -> None:
    """No hook asks Azure for a key, a password or a token."""
    text = "\n".join(file.read_text() for file in INFRA.glob("hooks/*.py"))
    assert not [word for word in ("credential reset", "keys list", "listKeys", "get-access-token") if word in text]


def test_hooks_need_nothing_installed() -> None:
    """A hook imports the standard library and the other hooks alone: it runs before anything is installed."""
    files = list(INFRA.glob("hooks/*.py"))
    known = sys.stdlib_module_names | {file.stem for file in files}
    for file in files:
        nodes = [
            node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Import | ast.ImportFrom)
        ]
        names = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
        names += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
        assert [name for name in names if name.partition(".")[0] not in known] == [], file.name

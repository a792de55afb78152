"""azd as its hooks see it: an environment in a file, and nothing else.

A hook's process gets the caller's environment and that file's values (Azure/azure-dev, pkg/ext/hooks_runner.go). The
file is read again before and after each hook. It starts with the name, the region and the subscription; `azd provision`
adds the template's outputs, and `azd down` removes them before postdown runs (pkg/infra/provisioning).
AZURE_PRINCIPAL_ID and AZURE_TENANT_ID are never in the file: azd puts the first only into parameters
(bicep_provider.go).

`az` answers from a script and records its calls.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.infra.declared import INFRA

PLACE = "/subscriptions/sub/providers/Microsoft.MachineLearningServices/locations/westeurope"
ANSWERS = json.loads(Path(__file__).with_name("answers.json").read_text("utf-8"))
STAND_IN = """#!{python} -IS
import sys  # and nothing else: the hooks call this hundreds of times, and json alone doubles the time of a start
folder, arguments = {folder!r}, sys.argv[1:]
told = {{"program": {program!r}, "argv": arguments}}
if "--body" in arguments:
    told["body"] = open(arguments[arguments.index("--body") + 1][1:]).read()
with open(folder + "/calls", "a") as calls:
    calls.write(repr(told) + "\\n")
line = " ".join(arguments)
if {program!r} == "azd" and arguments[:2] == ["env", "set"]:
    import json
    kept = json.load(open(folder + "/env"))
    json.dump(kept | {{arguments[2]: arguments[3]}}, open(folder + "/env", "w"))
seen = [eval(call)["argv"] for call in open(folder + "/calls")]
for part, printed in eval(open(folder + "/answers").read()):
    if part in line:  # one answer after the other, the last one again and again
        asked = sum(part in " ".join(argv) for argv in seen)
        answer = printed[min(asked, len(printed)) - 1]
        sys.exit(answer) if answer.startswith("ERROR") else print(answer)
        break
"""
Answers = list[tuple[str, Any]]
GONE = (  # Resource Manager's answer as `az rest` prints it
    'ERROR: Not Found({"error":{"code":"ResourceNotFound","message":"The Resource \'x\' under resource group \'y\' was '
    'not found. For more details please go to https://aka.ms/ARMResourceNotFoundFix"}})'
)
FREE = {"nameAvailable": True}
REGISTRY = {"id": "/registry/id", "name": "cr1", "loginServer": "cr1.azurecr.io"}
READY: Answers = [
    ("account show", {"name": "Pay as you go", "user": {"name": "me@example.org", "type": "user"}}),
    ("ad signed-in-user show", {"id": "me"}),
    ("bicep version", "Bicep CLI version 0.41.2 (3e403ea7d7)"),
    ("version --output", {"azure-cli": "2.80.0"}),
    ("provider list", [{"namespace": "Microsoft.Storage", "registrationState": "Registered"}]),
    ("list-flexconsumption-locations", [{"name": "West Europe"}, {"name": "North Europe"}]),
    (f"{PLACE}/vmSizes", ANSWERS["vmSizes"]),
    (f"{PLACE}/usages", ANSWERS["usages"]),
    ("resource list", []),
    ("systemTopics", GONE),
    ("/computes/cpu-cluster", GONE),
    ("checkNameAvailability", FREE),
    ("deletedVaults", GONE),
    ("budgets", GONE),
    ("deployment sub create", {"properties": {"outputs": {"clusterRoleId": {"value": "role-1"}}}}),
    ("cloud show", {"endpoints": {"microsoftGraphResourceId": "https://graph.microsoft.com/"}}),
    ("ad app list", []),
    ("ad app create", {"appId": "client-1", "displayName": "Trainyard (test)"}),
    ("ad sp list", []),
    ("ad sp create", {"id": "principal-1"}),
    ("appRoleAssignedTo", {"value": []}),
    ("acr show", REGISTRY),
    ("acr repository list", []),
    ("role assignment list", [{"principalId": "nodes"}]),
]
OUTPUTS = {
    "AZURE_RESOURCE_GROUP": "rg-test",
    "AZURE_FUNCTION_APP_NAME": "func-1",
    "AZURE_STORAGE_ACCOUNT_NAME": "st1",
    "AZURE_WORKSPACE_NAME": "mlw-1",
    "AZURE_REGISTRY_NAME": "cr1",
    "AZURE_NODES_PRINCIPAL_ID": "nodes",
    "TRAINYARD_URL": "https://func-1.azurewebsites.net/api",
    "TRAINYARD_SCOPE": "",
    "TRAINYARD_ACCOUNT_URL": "https://st1.blob.core.windows.net/",
}


class Azd:
    """One azd environment, and the programs that its hooks may call: az, azd, and docker if `installed`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        for program in ("az", "azd"):
            self.install(program)
        known = {"AZURE_ENV_NAME": "test", "AZURE_LOCATION": "westeurope", "AZURE_SUBSCRIPTION_ID": "sub"}
        (folder / "env").write_text(json.dumps(known))

    def install(self, program: str) -> None:
        file = self._folder / program
        file.write_text(STAND_IN.format(python=sys.executable, folder=str(self._folder), program=program))
        file.chmod(0o755)

    @property
    def values(self) -> dict[str, str]:
        kept: dict[str, str] = json.loads((self._folder / "env").read_text())
        return kept

    def set(self, **values: str) -> None:
        (self._folder / "env").write_text(json.dumps(self.values | values))

    def provisioned(self) -> None:
        """Add the template's outputs, as `azd provision` does."""
        self.set(**OUTPUTS)

    def destroyed(self) -> None:
        """Remove the template's outputs, as `azd down` does before postdown."""
        left = {name: value for name, value in self.values.items() if name not in OUTPUTS}
        (self._folder / "env").write_text(json.dumps(left))

    def hook(self, name: str, answers: Answers) -> tuple[subprocess.CompletedProcess[str], list[dict[str, Any]]]:
        """Run a hook; return the process and the calls that it made."""
        (self._folder / "answers").write_text(repr([(part, printed(answer)) for part, answer in answers]))
        (self._folder / "calls").write_text("")
        env = {**self.values, "TRAINYARD_PAUSE_SECONDS": "0.01", "PATH": str(self._folder)}
        argv = [sys.executable, str(INFRA / "hooks" / f"{name}.py")]
        done = subprocess.run(argv, env=env, capture_output=True, text=True, timeout=60)
        calls = map(ast.literal_eval, (self._folder / "calls").read_text().splitlines())
        return done, [call | ({"body": json.loads(call["body"])} if "body" in call else {}) for call in calls]


def printed(answer: Any) -> list[str]:
    """The text that a program prints for this answer; a list of answers is printed one per call."""
    each = answer["then"] if isinstance(answer, dict) and "then" in answer else [answer]
    return [one if isinstance(one, str) else json.dumps(one) for one in each]


def lines(calls: list[dict[str, Any]]) -> list[str]:
    return [" ".join(call["argv"]) for call in calls]

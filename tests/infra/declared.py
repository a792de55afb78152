"""The resources that infra/ declares, evaluated once as azd would deploy them with only the name and the region
set."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from emulators.arm import access, declared, deploy
from emulators.arm.operations import Need

ROOT = Path(__file__).resolve().parent.parent.parent
INFRA = ROOT / "infra"
SPECS, TOOLS = ROOT.parent / "shared" / "specs", ROOT.parent / "shared" / "tools"
ENVIRONMENT = {"AZURE_ENV_NAME": "local", "AZURE_LOCATION": "local", "AZURE_PRINCIPAL_ID": "operator"}
ABSENT = "THE BICEP FILES AGAINST AZURE'S TYPES: ../shared, with the checker and the types, is not beside this checkout"


def parameters(**environment: str) -> dict[str, Any]:
    """main.parameters.json as azd fills it in, from this environment and the defaults."""
    known = {**ENVIRONMENT, **environment}

    def value(match: re.Match[str]) -> str:
        name, _, default = match[1].partition("=")
        return known.get(name, default)

    text = re.sub(r"\$\{([^}]*)\}", value, (INFRA / "main.parameters.json").read_text())
    given = {name: entry["value"] for name, entry in json.loads(text)["parameters"].items()}
    return {name: int(value) if _is_number(value) else value for name, value in given.items()}


def _is_number(value: object) -> bool:
    return isinstance(value, str) and re.fullmatch(r"\d+", value) is not None


@cache
def of_subscription() -> deploy.Deployment:
    return deploy.deploy(INFRA / "subscription.bicep", {"environmentName": "local", "budgetStart": "2026-11-01"})


@cache
def main(auth: str = "keys") -> deploy.Deployment:
    role = of_subscription().outputs["clusterRoleId"]
    client = {"TRAINYARD_AUTH": auth} | ({"TRAINYARD_ENTRA_CLIENT_ID": "client"} if auth == "entra" else {})
    return deploy.deploy(INFRA / "main.bicep", parameters(TRAINYARD_CLUSTER_ROLE_ID=role, **client))


def grants() -> access.Access:
    return access.Access(main(), of_subscription())


def azure_yaml() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((ROOT / "azure.yaml").read_text())
    return loaded


def account_id() -> str:
    return main().one(declared.ACCOUNT).id


def workspace_id() -> str:
    return main().one(declared.WORKSPACES).id


def principal(name: str) -> str:
    return declared.principal(main(), declared.identity(main(), name))


def allowed(rights: access.Access, who: str, need: Need) -> bool:
    target = account_id() + need.target
    return any(all(rights.may(who, action, target) for action in some) for some in need.any_of)

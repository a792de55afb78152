"""How Microsoft's own engine evaluates every resource of infra/, in a snapshot of infra/."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from emulators.arm.deploy import Deployment, deploy

SPECS = Path(__file__).resolve().parents[3] / "shared" / "specs" / "bicep"
ABSENT = "../shared is not beside this checkout; it holds what Microsoft's engine works out"
SUBSCRIPTION, TENANT = "00000000-0000-0000-0000-000000000000", "99999999-9999-9999-9999-999999999999"
PARAMETERS = {  # the values of the .bicepparam files beside the snapshots
    "main": {
        "environmentName": "trainyard-test",
        "location": "westeurope",
        "principalId": "11111111-1111-1111-1111-111111111111",
        "uploaderGroupId": "22222222-2222-2222-2222-222222222222",
        "clusterRoleId": "33333333-3333-3333-3333-333333333333",
        "alertEmail": "ops@example.org",
    },
    "subscription": {"environmentName": "trainyard-test", "budgetStart": "2026-11-01"},
}


def spec(name: str) -> Any:
    file = SPECS / name
    if not file.exists():
        pytest.skip(ABSENT)
    return json.loads(file.read_text("utf-8"))


def deployed(name: str) -> Deployment:
    file = SPECS / "infra" / f"{name}.bicep"
    if not file.exists():
        pytest.skip(ABSENT)
    return deploy(file, PARAMETERS[name], subscription=SUBSCRIPTION, tenant=TENANT)


@pytest.mark.parametrize("name", sorted(PARAMETERS))
def test_every_resource_is_the_engines(name: str) -> None:
    """Type, version, name, id and every property equal the real engine's, wherever the engine has a value instead
    of an expression."""
    predicted = spec(f"{name}.snapshot.json")["predictedResources"]
    ours = deployed(name).resources
    assert len(ours) == len(predicted)
    assert sorted(r.kind.lower() for r in ours.values()) == sorted(r["type"].lower() for r in predicted)
    named = [resource for resource in predicted if not is_expression(resource["id"])]
    assert [resource["id"] for resource in named if resource["id"].lower() not in ours] == []
    for resource in named:
        found = ours[resource["id"].lower()]
        written = {"type": found.kind, "name": found.name, "apiVersion": found.api_version, **found.body}
        assert differences({k: v for k, v in resource.items() if k != "id"}, written, resource["name"]) == []


def is_expression(value: Any) -> bool:
    return isinstance(value, str) and value.startswith("[") and not value.startswith("[[")


def differences(theirs: Any, ours: Any, place: str) -> list[str]:
    """The paths where the engine's value, if not an expression, differs from ours."""
    if is_expression(theirs):
        return []
    if isinstance(theirs, dict) and isinstance(ours, dict):
        keys = {key for key in theirs if not is_expression(key)}
        extra = (
            [] if len(theirs) == len(ours) and keys <= ours.keys() else [f"{place}: {sorted(theirs)}, {sorted(ours)}"]
        )
        return extra + [d for key in keys & ours.keys() for d in differences(theirs[key], ours[key], f"{place}.{key}")]
    if isinstance(theirs, list) and isinstance(ours, list) and len(theirs) == len(ours):
        pairs = enumerate(zip(theirs, ours, strict=True))
        return [d for index, pair in pairs for d in differences(*pair, f"{place}[{index}]")]
    return [] if theirs == ours and type(theirs) is type(ours) else [f"{place}: {theirs!r}, {ours!r}"]

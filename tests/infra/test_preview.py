"""A preview covers everything: every resource has a name before creation, and depends on the resources that it
uses."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from emulators.arm import syntax
from emulators.arm.deploy import deploy
from emulators.arm.refusals import refusals
from emulators.arm.resources import Resource
from emulators.arm.runtime import value_of
from emulators.process import PartFailed
from local.declaration import Declaration
from tests.infra.declared import INFRA, main, of_subscription, parameters

MADE_BY_AZURE = "azureml-blobstore-"  # the only name that Azure ML chooses, with the workspace's GUID


def test_azure_would_refuse_nothing() -> None:
    """infra/ passes every known rule of Azure, with any of the settings that azd passes on."""
    asked = {"TRAINYARD_SUBMISSIONS_ALWAYS_READY": "1", "TRAINYARD_ALERT_EMAIL": "a@b.c", "AZURE_PRINCIPAL_ID": "me"}
    assert refusals(of_subscription()) == []
    assert refusals(main()) == []
    assert refusals(main("entra")) == []
    assert refusals(deploy(INFRA / "main.bicep", parameters(**asked))) == []


@pytest.mark.parametrize(
    ("file", "before", "after", "words"),
    [
        ("modules/app.bicep", "http20Enabled: true", "ftpsState: 'Disabled'", "Site.SiteConfig.ftpsState"),
        ("main.bicep", "Standard_D2s_v3", "Standard_D2s_v5", "Standard_D2s_v5 is not a supported VM size"),
    ],
)
def test_the_local_cloud_refuses_what_azure_refuses(
    tmp_path: Path, file: str, before: str, after: str, words: str
) -> None:
    """The local cloud does not start with a declaration that Azure would refuse, and the error says why."""
    shutil.copytree(INFRA, tmp_path / "infra")
    wrong = tmp_path / "infra" / file
    wrong.write_text(wrong.read_text("utf-8").replace(before, after), "utf-8")
    with pytest.raises(PartFailed, match=words):
        Declaration(tmp_path / "infra")


def test_names_do_not_depend_on_what_azure_makes() -> None:
    """Whatever ids Azure gives to identities, each resource keeps its name, except the workspace's container."""

    def other(resource: Resource, path: tuple[str, ...]) -> Any:
        value = value_of(resource, path)
        return f"other-{value}" if isinstance(value, str) else value

    ids = {found.id for found in main().resources.values()}
    same = parameters(TRAINYARD_CLUSTER_ROLE_ID=of_subscription().outputs["clusterRoleId"])
    again = {found.id for found in deploy(INFRA / "main.bicep", same, runtime=other).resources.values()}
    assert len(ids) == len(again)
    assert [one for one in sorted(ids ^ again) if MADE_BY_AZURE not in one] == []
    assert len(ids - again) == 3, "the container, the grant of the nodes, and that of whoever deploys"


def test_each_module_waits_for_what_it_uses() -> None:
    """A resource that a module declares as existing is created by a module that it depends on, directly or
    indirectly."""
    file = syntax.read(INFRA / "main.bicep")
    text = (INFRA / "main.bicep").read_text()
    made = {symbol: kinds(module.path, existing=False) for symbol, module in file.modules.items()}
    used = {symbol: kinds(module.path, existing=True) for symbol, module in file.modules.items()}
    before = {symbol: waits(file, text, symbol) for symbol in file.modules}
    missing = []
    for symbol, needed in used.items():
        earlier = everything_before(symbol, before)
        there = set().union(*(made[one] for one in earlier), made[symbol])
        missing += [f"{symbol} uses {kind}" for kind in sorted(needed - there)]
    assert missing == []


def kinds(path: Path, existing: bool) -> set[str]:
    """The resource types that a module creates, or uses, including those of nested modules."""
    file = syntax.read(path)
    own = {r.kind.lower() for r in file.resources.values() if r.existing is existing}
    return own.union(*(kinds(inner.path, existing) for inner in file.modules.values()))


def waits(file: syntax.File, text: str, symbol: str) -> set[str]:
    block = re.search(rf"^module {symbol} .*?^}}", text, re.MULTILINE | re.DOTALL)
    assert block
    return {other for other in file.modules if re.search(rf"\b{other}\.outputs|^ +{other}$", block[0], re.MULTILINE)}


def everything_before(symbol: str, before: dict[str, set[str]]) -> set[str]:
    return before[symbol].union(*(everything_before(one, before) for one in before[symbol]))


def test_the_linter_has_its_rules_and_reasons() -> None:
    """bicepconfig.json sets every active rule to error, and gives a reason for each rule that is off."""
    text = (INFRA / "bicepconfig.json").read_text()
    rules = json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE))["analyzers"]["core"]["rules"]
    assert rules["what-if-short-circuiting"] == {"level": "error"}
    off = [name for name, rule in rules.items() if rule["level"] == "off"]
    assert {rule["level"] for rule in rules.values()} == {"error", "off"}
    for name in off:
        assert re.search(rf'^\s*// .+\n\s*"{name}"', text, re.MULTILINE), f"{name} is off without a reason"


def test_one_line_alone_is_excused_from_the_linter() -> None:
    """The only blind spot of a preview is the container that Azure ML names."""
    lines = [line for file in INFRA.rglob("*.bicep") for line in file.read_text().splitlines() if "#disable" in line]
    assert [line.strip() for line in lines] == ["#disable-next-line what-if-short-circuiting"]

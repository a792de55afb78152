"""Valid templates that Azure refuses are refused here, in the real service's words."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulators.arm.deploy import deploy
from emulators.arm.refusals import NO_APP_SETTING, NO_SITE_CONFIG, NO_SITE_PROPERTY, refusals
from emulators.arm.vm_sizes import refused_size

SITE = """
param config object = {}
param more object = {}
param settings object = {}
param scale object = {}
resource plan 'Microsoft.Web/serverfarms@1' = { name: 'plan', sku: { name: 'FC1', tier: 'FlexConsumption' } }
resource site 'Microsoft.Web/sites@1' = {
  name: 'site'
  properties: union({
    serverFarmId: plan.id
    siteConfig: config
    functionAppConfig: {
      scaleAndConcurrency: union({ instanceMemoryMB: 2048, maximumInstanceCount: 40 }, scale)
    }
  }, more)
}
resource given 'Microsoft.Web/sites/config@1' = { parent: site, name: 'appsettings', properties: settings }
"""
GRANTS = """
resource account 'Microsoft.Storage/storageAccounts@1' = { name: 'account' }
var grants = [ 'one', 'two' ]
resource assigned 'Microsoft.Authorization/roleAssignments@1' = [for name in grants: {
  name: name
  scope: account
  properties: { principalId: 'me', roleDefinitionId: '/providers/Microsoft.Authorization/roleDefinitions/reader' }
}]
"""
PULL = """
resource registry 'Microsoft.ContainerRegistry/registries@1' = { name: 'registry' }
resource nodes 'Microsoft.ManagedIdentity/userAssignedIdentities@1' = { name: 'nodes' }
resource workspace 'Microsoft.MachineLearningServices/workspaces@1' = {
  name: 'workspace', properties: { containerRegistry: registry.id }
}
resource cluster 'Microsoft.MachineLearningServices/workspaces/computes@1' = {
  parent: workspace
  name: 'cpu'
  identity: { type: 'UserAssigned', userAssignedIdentities: { '${nodes.id}': {} } }
  properties: { properties: { vmSize: 'Standard_D2s_v3', vmPriority: 'LowPriority' } }
}
resource pull 'Microsoft.Authorization/roleAssignments@1' = {
  name: 'ours'
  scope: registry
  properties: {
    principalId: nodes.properties.principalId
    roleDefinitionId: '/x/7f951dda-4ed3-4680-a7ca-43fe172d538d'
  }
}
"""


def refused(folder: Path, text: str, **parameters: object) -> list[str]:
    (folder / "main.bicep").write_text(text)
    return refusals(deploy(folder / "main.bicep", parameters))


def test_a_plain_flex_site_passes(tmp_path: Path) -> None:
    """The settings of Microsoft's own samples on Flex Consumption pass."""
    assert refused(tmp_path, SITE, config={"minTlsVersion": "1.2", "http20Enabled": True}) == []


@pytest.mark.parametrize(
    ("where", "name"),
    [
        *(("config", name) for name in NO_SITE_CONFIG),
        *(("more", name) for name in NO_SITE_PROPERTY),
        *(("settings", name) for name in NO_APP_SETTING),
    ],
)
def test_what_flex_consumption_lacks_is_refused(where: str, name: str, tmp_path: Path) -> None:
    """Each property and setting that Flex Consumption does not support is refused by name, as in ARM's error 51021."""
    (told,) = refused(tmp_path, SITE, **{where: {name: "x"}})
    assert f"{name}) for Flex Consumption sites is invalid" in told


def test_other_plans_take_them(tmp_path: Path) -> None:
    """Plans other than Flex Consumption accept these properties and settings."""
    text = SITE.replace("tier: 'FlexConsumption'", "tier: 'ElasticPremium'")
    assert refused(tmp_path, text, config={"ftpsState": "Disabled"}) == []


@pytest.mark.parametrize(
    ("scale", "words"),
    [
        ({"instanceMemoryMB": 1024}, "instanceMemoryMB is 1024; choose one of (512, 2048, 4096)"),
        ({"maximumInstanceCount": 10}, "maximumInstanceCount must be 40 to 1000"),
        ({"alwaysReady": [{"name": "submissions", "instanceCount": 1}]}, "takes http, blob, durable or function:NAME"),
    ],
)
def test_scale_has_bounds(scale: dict[str, object], words: str, tmp_path: Path) -> None:
    """Memory, instance counts and always-ready groups outside of the plan's bounds are refused."""
    (told,) = refused(tmp_path, SITE, scale=scale)
    assert words in told


@pytest.mark.parametrize(
    ("size", "priority", "words"),
    [
        ("Standard_D2s_v3", "LowPriority", ""),
        ("STANDARD_DS3_V2", "Dedicated", ""),
        ("Standard_NC24ads_A100_v4", "LowPriority", ""),
        ("Standard_D2s_v5", "LowPriority", "Standard_D2s_v5 is not a supported VM size of Azure ML"),
        ("Standard_D4s_v4", "Dedicated", "is not a supported VM size"),
        ("Standard_B2s", "Dedicated", "is not a supported VM size"),
        ("Standard_ND96isr_H100_v5", "LowPriority", "is not allowed for LowPriority"),
        ("Standard_ND96isr_H100_v5", "Dedicated", ""),
        ("Standard_ND96isr_H200_v5", "Dedicated", ""),
        ("Standard_NC6s_v3", "Dedicated", "Azure has retired the series NCv3"),
        ("Standard_NV12s_v3", "LowPriority", "Azure has retired the series NVv3"),
    ],
)
def test_sizes_are_those_of_microsofts_table(size: str, priority: str, words: str) -> None:
    """A size whose series is in Microsoft's table passes. An unknown size, or one without a local disk, is refused."""
    told = refused_size(size, priority)
    assert words in told
    assert bool(told) is bool(words)


def test_one_role_twice_is_refused(tmp_path: Path) -> None:
    """A second assignment of a role to the same principal on the same scope is refused with RoleAssignmentExists."""
    (told,) = refused(tmp_path, GRANTS)
    assert "assigned by two and by one: RoleAssignmentExists" in told


def test_what_azure_ml_grants_by_itself_is_refused_to_others(tmp_path: Path) -> None:
    """Azure ML itself assigns AcrPull on the workspace's registry to a cluster's identity, so a second assignment
    fails."""
    (told,) = refused(tmp_path, PULL)
    assert "assigned by ours and by Azure ML: RoleAssignmentExists" in told


def test_names_and_starts_have_a_form(tmp_path: Path) -> None:
    """A storage account's name and a budget's start date must follow Azure's rules."""
    text = """
    resource account 'Microsoft.Storage/storageAccounts@1' = { name: 'Not-This' }
    resource budget 'Microsoft.Consumption/budgets@1' = {
      name: 'budget', properties: { timePeriod: { startDate: '2026-11-02' } }
    }
    """
    told = refused(tmp_path, text)
    assert len(told) == 2
    assert "it must be the first day of a month" in told[0]
    assert "this is not a name for it" in told[1]

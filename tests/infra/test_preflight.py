"""The preflight reports every obstacle to a deployment at once, before anything is created."""

from __future__ import annotations

import re

import pytest

from tests.infra.azd import READY, Answers, Azd, lines
from tests.infra.declared import INFRA, ROOT


def refused(azd: Azd, *answers: tuple[str, object]) -> str:
    """The preflight's error message, after checking that nothing was created."""
    done, calls = azd.hook("preflight", [*answers, *READY])
    assert done.returncode == 1, done.stdout
    assert not any("create" in line or "--method put" in line for line in lines(calls))
    return done.stderr


def test_it_answers_every_question(azd: Azd) -> None:
    """The preflight prints the signed-in account, versions and standing cost, and checks providers, region, quota
    and names."""
    done, calls = azd.hook("preflight", READY)
    assert done.returncode == 0, done.stderr
    assert "Signed in as me@example.org, subscription Pay as you go" in done.stdout
    assert "Azure CLI 2.80.0 with Bicep 0.41.2" in done.stdout
    assert re.search(r"Standing, with nothing running, this costs about \$[\d.]+ a month", done.stdout)
    asked = "\n".join(lines(calls))
    for question in ("provider list", "list-flexconsumption-locations", "/vmSizes", "/usages", "checkNameAvailability"):
        assert question in asked


def test_the_standing_cost_is_the_pages_sum() -> None:
    """The preflight and the README name the sum of the table in docs/azure-evidence.md."""
    (told,) = re.findall(r'STANDING_DOLLARS = "([\d.]+)"', (INFRA / "hooks" / "preflight.py").read_text())
    assert f"| **{told}** |" in (ROOT / "docs" / "azure-evidence.md").read_text("utf-8")
    assert f"at most ${told} a month" in (ROOT / "README.md").read_text("utf-8")


def test_who_is_not_signed_in_is_told_how(azd: Azd) -> None:
    """Without a login, or with a login that can't see the subscription, the error names the command that helps."""
    told = refused(azd, ("account show", "ERROR: Please run 'az login' to setup account."))
    assert "The Azure CLI can't use subscription sub. Run: az login" in told


def test_an_old_bicep_is_told(azd: Azd) -> None:
    """For a Bicep that can't compile unnamed modules, the error names the command that helps."""
    told = refused(azd, ("bicep version", "Bicep CLI version 0.30.3 (ce5e2bf0e6)"))
    assert "The Azure CLI's Bicep is 0.30.3; 0.34.1 or newer is needed. Run: az bicep upgrade" in told


def test_a_missing_bicep_is_installed(azd: Azd) -> None:
    """If the Azure CLI has no Bicep, the preflight installs it."""
    none: Answers = [("bicep version", "ERROR: Bicep CLI not found. Install it now by running 'az bicep install'.")]
    done, calls = azd.hook("preflight", [*none, *READY])
    assert done.returncode == 0, done.stderr
    assert any(line.startswith("bicep install") for line in lines(calls))


def test_what_is_not_registered_is_registered(azd: Azd) -> None:
    """Every unregistered provider is registered, in azd's subscription."""
    done, calls = azd.hook("preflight", READY)
    assert done.returncode == 0, done.stderr
    told = [line for line in lines(calls) if line.startswith("provider register")]
    registered = {line.split()[3] for line in told}
    assert "Microsoft.Storage" not in registered
    assert {"Microsoft.App", "Microsoft.EventGrid", "Microsoft.MachineLearningServices"} <= registered
    assert all("--subscription sub" in line for line in told)


def test_a_short_quota_is_told_with_its_numbers(azd: Azd) -> None:
    """In Microsoft's example of usages, the region's low-priority quota decides, not a family's, which has no
    limit."""
    azd.set(TRAINYARD_CLUSTER_VM_SIZE="Standard_DS4_v2", TRAINYARD_CLUSTER_MAX_NODES="5")
    told = refused(azd)
    assert (
        "Low-priority cores of Azure ML in westeurope: 5 x Standard_DS4_v2 need 40, free are 32 (limit 50, used 18)"
        in told
    )
    assert "TRAINYARD_CLUSTER_MAX_NODES" in told


def test_no_limit_is_enough(azd: Azd) -> None:
    """A limit of -1 means no limit."""
    none = {"value": [{"name": {"value": "TotalLowPriorityCores"}, "limit": -1, "currentValue": 7}]}
    done, _ = azd.hook("preflight", [("/usages", none), *READY])
    assert done.returncode == 0, done.stderr


def test_lists_are_read_to_their_end(azd: Azd) -> None:
    """The quota on a later page is found."""
    first = {"value": [], "nextLink": "https://management.azure.com/next?api-version=2024-04-01&$skiptoken=2"}
    second = {"value": [{"name": {"value": "TotalLowPriorityCores"}, "limit": 1, "currentValue": 0}]}
    assert "free are 1 (limit 1" in refused(azd, ("/usages", first), ("management.azure.com/next", second))


def test_every_fault_is_told_at_once(azd: Azd) -> None:
    """A region without Flex Consumption, a size that Azure ML lacks and a taken name are all reported."""
    azd.set(TRAINYARD_CLUSTER_VM_SIZE="Standard_D2s_v5")
    taken = {"nameAvailable": False, "message": "It is taken."}
    told = refused(
        azd,
        ("list-flexconsumption-locations", [{"name": "North Europe"}]),
        ("Microsoft.Storage/checkNameAvailability", taken),
    )
    assert "Flex Consumption is not in region westeurope" in told
    assert "northeurope" in told
    assert "Azure ML has no VM size Standard_D2s_v5 for clusters in westeurope" in told
    assert re.search(r"The name st\w{13} \(Microsoft.Storage/storageAccounts\) is taken: It is taken", told)


def test_our_own_names_are_not_taken(azd: Azd) -> None:
    """Names taken by our own first deployment are fine, and our own deleted vault is purged."""
    _, calls = azd.hook("preflight", READY)
    ours = [{"name": call["body"]["name"]} for call in calls if "body" in call]
    taken = {"nameAvailable": False, "message": "It is taken."}
    done, _ = azd.hook("preflight", [("resource list", ours), ("checkNameAvailability", taken), *READY])
    assert done.returncode == 0, done.stderr
    deleted = {"nameAvailable": False, "message": "You need to either recover or purge the existing key vault."}
    done, _ = azd.hook("preflight", [("Microsoft.KeyVault/checkNameAvailability", deleted), *READY])
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["AZURE_SUBSCRIPTION_ID", "AZURE_LOCATION", "AZURE_ENV_NAME"])
def test_a_missing_setting_is_told(azd: Azd, name: str) -> None:
    """A setting that azd has not asked for yet is named, with the command that sets it."""
    azd.set(**{name: ""})
    assert f"{name} is not set. azd up asks for it; or set it with azd env set {name} VALUE." in refused(azd)

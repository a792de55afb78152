"""The administrator's pages name what infra/ declares: alerts, roles, settings and retention."""

from __future__ import annotations

import re

from emulators.arm import declared
from emulators.arm.access import built_in
from shared.kernel.index_settings import EARLIER_NAMES
from shared.kernel.settings import SETTINGS
from tests.infra.declared import INFRA, ROOT, grants, main

PAGES = ("azure-reference.md", "azure-evidence.md", "operations.md")
AZURE, EVIDENCE, OPERATIONS = ((ROOT / "docs" / name).read_text("utf-8") for name in PAGES)


def rows(page: str, heading: str) -> list[list[str]]:
    """The cells of the first table under a heading, without its header row."""
    section = page.partition(f"\n{heading}\n")[2].partition("\n#")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_every_alert_is_explained() -> None:
    """Each alert has a row with its meaning and the action, and each row except the budget's has an alert."""
    kinds = ("Microsoft.Insights/scheduledQueryRules", "Microsoft.Insights/metricAlerts")
    alerts = {alert.name for kind in kinds for alert in main().of(kind)}
    explained = {row[0].strip("`"): row for row in rows(OPERATIONS, "## Alerts")}
    assert explained.keys() == alerts | {"budget"}
    assert all(all(row) and len(row) == 3 for row in explained.values())


def test_alerts_reach_someone() -> None:
    """Every alert notifies the one action group, and has a page to read."""
    people = main().one("microsoft.insights/actionGroups").id
    for alert in main().of("Microsoft.Insights/metricAlerts"):
        assert alert.properties["actions"] == [{"actionGroupId": people}]
        assert "docs/operations.md" in alert.properties["description"]
    query = main().one("Microsoft.Insights/scheduledQueryRules").properties
    assert query["actions"] == {"actionGroups": [people]}


def test_every_role_is_in_the_table() -> None:
    """docs/azure-reference.md names exactly the roles that infra/ assigns, as Azure names them."""
    names = {grant.role.name for grant in grants().grants}
    ours = names - {role.name for role in built_in()}
    told = {row[2] for row in rows(AZURE, "## Who may do what")}
    assert told == (names - ours) | {"Trainyard cluster size (ours)"}
    assert len(ours) == 1


def test_the_sum_is_the_sum() -> None:
    """The idle cost is the sum of its rows."""
    costs = {row[0]: row[2] for row in rows(EVIDENCE, "## What it costs when idle")}
    total = float(costs.pop("**sum, at most**").strip("*"))
    assert round(sum(float(cost) for cost in costs.values() if re.fullmatch(r"[\d.]+", cost)), 2) == total


def test_every_azd_setting_is_described() -> None:
    """Each azd environment setting that a template or a hook reads is documented or kept by a hook."""
    readers = [INFRA / "main.parameters.json", *INFRA.glob("hooks/*.py")]
    read = set(re.findall(r"TRAINYARD_[A-Z_]+", "\n".join(file.read_text() for file in readers)))
    remembered = {  # values that the hooks keep for themselves
        "TRAINYARD_CLUSTER_ROLE_ID",
        "TRAINYARD_ENTRA_CLIENT_ID",
        "TRAINYARD_BUDGET_START",
        "TRAINYARD_GPU_IMAGE",
        "TRAINYARD_IMAGE",
        "TRAINYARD_URL",  # an output of the template
        "TRAINYARD_ENTRA_MADE_HERE",
        "TRAINYARD_STORAGE_TOPIC",
        "TRAINYARD_PAUSE_SECONDS",  # used by tests
        "TRAINYARD_ROLES_SECONDS",
        *SETTINGS,  # documented on their own page
        *EARLIER_NAMES.values(),
    }
    assert {row[0].strip("`") for row in rows(AZURE, "## What azd env set takes") if row[0].startswith("`")} <= read
    assert [name for name in sorted(read - remembered) if f"`{name}`" not in AZURE] == []


def test_what_is_kept_is_what_is_declared() -> None:
    """The days in docs/operations.md equal those of the lifecycle rules, the retention and the logs."""
    rules = main().one("Microsoft.Storage/storageAccounts/managementPolicies").properties["policy"]["rules"]
    days = {
        rule["definition"]["filters"]["prefixMatch"][0]: next(iter(rule["definition"]["actions"]["baseBlob"].values()))
        for rule in rules
    }
    told = {row[0]: row[1] for row in rows(OPERATIONS, "## What is kept, and for how long")}
    assert told["dead letters"] == f"{days['deadletter/']['daysAfterModificationGreaterThan']} days"
    assert f"after {days['output/']['daysAfterModificationGreaterThan']} days" in told["archives in `output`"]
    logs = told["logs of jobs in `azureml/ExperimentRun/`"]
    assert logs.startswith(f"{days['azureml/ExperimentRun/']['daysAfterModificationGreaterThan']} days")
    retention = main().one("Microsoft.OperationalInsights/workspaces").properties["retentionInDays"]
    assert told["logs and traces"].startswith(f"{retention} days")


def test_lifecycle_rules_name_containers_that_there_are() -> None:
    """Each rule's prefix begins with a declared container."""
    rules = main().one("Microsoft.Storage/storageAccounts/managementPolicies").properties["policy"]["rules"]
    prefixes = [prefix for rule in rules for prefix in rule["definition"]["filters"]["prefixMatch"]]
    assert {prefix.partition("/")[0] for prefix in prefixes} <= set(declared.storage(main()).containers)

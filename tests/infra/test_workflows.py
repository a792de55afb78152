"""The deployment workflows: no secret, a federated identity, every variable, and only existing files."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.infra.declared import ABSENT, ROOT, SPECS, azure_yaml

WORKFLOWS = {name: ROOT / ".github" / "workflows" / f"{name}.yml" for name in ("infra", "azure-dev")}
SNAPSHOT = SPECS / "bicep" / "main.snapshot.json"


def jobs(name: str) -> dict[str, Any]:
    loaded = yaml.safe_load(WORKFLOWS[name].read_text())
    return {job: {**loaded["jobs"][job], "inherited": loaded.get("permissions", {})} for job in loaded["jobs"]}


@pytest.mark.parametrize("name", WORKFLOWS)
def test_no_workflow_holds_a_secret(name: str) -> None:
    """A job that logs in uses a federated credential, and may request GitHub's token."""
    text = WORKFLOWS[name].read_text()
    assert "secrets." not in text
    for job in jobs(name).values():
        logs_in = any(str(step.get("uses", "")).startswith("azure/login") for step in job["steps"])
        rights = job.get("permissions", job["inherited"])
        assert (rights.get("id-token") == "write") is logs_in
        assert set(rights.values()) <= {"read", "write"}
        assert {right for right, level in rights.items() if level == "write"} <= {"id-token"}


def test_the_deployment_gets_every_variable() -> None:
    """The workflow passes each variable that azd hands to the pipeline back to azd."""
    given = jobs("azure-dev")["deploy"]["env"]
    assert [name for name in azure_yaml()["pipeline"]["variables"] if name not in given] == []
    assert all(value in (f"${{{{ vars.{name} }}}}", "ServicePrincipal") for name, value in given.items())


@pytest.mark.parametrize("name", WORKFLOWS)
def test_every_named_file_is_there(name: str) -> None:
    """The Bicep files that a workflow names exist in the repository."""
    named = set(re.findall(r"\binfra/[\w/.]+\.bicep\b", WORKFLOWS[name].read_text()))
    assert [file for file in named if not (ROOT / file).is_file()] == []


def test_a_pull_request_is_shown_what_changes(tmp_path: Path) -> None:
    """The difference of two real snapshots has a line for each added, removed or changed resource, with its
    changes."""
    if not SNAPSHOT.exists():
        pytest.skip(ABSENT)
    changed = json.loads(SNAPSHOT.read_text("utf-8"))
    resources = {resource["name"]: resource for resource in changed["predictedResources"]}
    site = next(resource for resource in resources.values() if resource["type"] == "Microsoft.Web/sites")
    del site["properties"]["siteConfig"]["ftpsState"]
    gone = next(name for name in resources if name.endswith("/default/deadletter"))
    changed["predictedResources"].remove(resources[gone])
    changed["predictedResources"].append({"id": "/x/providers/A.B/c/d", "type": "A.B/c", "name": "d"})
    (tmp_path / "after.json").write_text(json.dumps(changed))
    told = infra_changes(SNAPSHOT, tmp_path / "after.json").splitlines()
    assert told[0] == "### infra/: 96 resources before, 96 after"
    assert [line.partition("`")[0] for line in told[2:]] == ["- **new** ", "- **gone** ", "- **changed** ", "  - "]
    assert "deadletter" in told[3]
    assert told[5] == "  - `properties.siteConfig.ftpsState`: `Disabled` → `null`"


def test_nothing_changed_says_so() -> None:
    """A pull request that changes no resource gets a comment that says so."""
    if not SNAPSHOT.exists():
        pytest.skip(ABSENT)
    assert infra_changes(SNAPSHOT, SNAPSHOT).endswith("No resource changes.\n")


def infra_changes(before: Path, after: Path) -> str:
    argv = [sys.executable, str(ROOT / ".ci" / "infra_changes.py"), str(before), str(after)]
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout

"""The workflows for whoever has Azure: no secret, a federated identity, every variable, every file that they name."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from tests.infra.declared import ROOT, azure_yaml

WORKFLOWS = {name: ROOT / ".github" / "workflows" / f"{name}.yml" for name in ("infra", "azure-dev")}


def jobs(name: str) -> dict[str, Any]:
    loaded = yaml.safe_load(WORKFLOWS[name].read_text())
    return {job: {**loaded["jobs"][job], "inherited": loaded.get("permissions", {})} for job in loaded["jobs"]}


@pytest.mark.parametrize("name", WORKFLOWS)
def test_no_workflow_holds_a_secret(name: str) -> None:
    """Whoever logs in does so with a federated credential, and may ask GitHub for its token."""
    text = WORKFLOWS[name].read_text()
    assert "secrets." not in text
    for job in jobs(name).values():
        logs_in = any(str(step.get("uses", "")).startswith("azure/login") for step in job["steps"])
        rights = job.get("permissions", job["inherited"])
        assert (rights.get("id-token") == "write") is logs_in
        assert set(rights.values()) <= {"read", "write"}
        assert {right for right, level in rights.items() if level == "write"} <= {"id-token"}


def test_the_deployment_gets_every_variable() -> None:
    """Each variable that azd hands to the pipeline reaches azd again in the workflow."""
    given = jobs("azure-dev")["deploy"]["env"]
    assert [name for name in azure_yaml()["pipeline"]["variables"] if name not in given] == []
    assert all(value in (f"${{{{ vars.{name} }}}}", "ServicePrincipal") for name, value in given.items())


@pytest.mark.parametrize("name", WORKFLOWS)
def test_every_named_file_is_there(name: str) -> None:
    """The Bicep files that a workflow names are in the repository."""
    named = set(re.findall(r"\binfra/[\w/.]+\.bicep\b", WORKFLOWS[name].read_text()))
    assert [file for file in named if not (ROOT / file).is_file()] == []

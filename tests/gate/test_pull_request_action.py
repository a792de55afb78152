"""The action that trains pull requests: its parts match each other, and the workflow on the page."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "agents" / "pull-request"
ACTION = yaml.safe_load((FOLDER / "action.yml").read_text("utf-8"))


def test_the_script_gets_each_of_its_variables() -> None:
    """The action sets the variables that the script reads, from inputs that the action declares."""
    (step,) = ACTION["runs"]["steps"]
    read = set(re.findall(r"\$\{?([A-Z_]{2,})", (FOLDER / "run.sh").read_text("utf-8"))) - {"TRAINYARD_TOKEN"}
    assert read <= set(step["env"])
    named = {name for value in step["env"].values() for name in re.findall(r"inputs\.(\w+)", value)}
    assert named == set(ACTION["inputs"])


def test_the_workflow_of_the_page_has_ten_lines() -> None:
    """The workflow sets the required inputs, and only inputs that the action declares."""
    page = (ROOT / "docs" / "agents.md").read_text("utf-8")
    found = re.search(r"^```yaml \.github/workflows/train\.yml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert found is not None
    assert len(found[1].splitlines()) == 10
    workflow = yaml.load(found[1], yaml.BaseLoader)  # which reads the key `on` as text
    given = workflow["jobs"]["train"]["steps"][1]["with"]
    required = {name for name, each in ACTION["inputs"].items() if each.get("required")}
    assert required <= set(given) <= set(ACTION["inputs"])
    assert workflow["on"] == "pull_request"

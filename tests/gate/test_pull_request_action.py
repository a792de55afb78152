"""The action that trains pull requests: its parts agree with each other, and with the workflow on the page."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "agents" / "pull-request"
ACTION = yaml.safe_load((FOLDER / "action.yml").read_text("utf-8"))


def test_the_script_gets_each_of_its_variables() -> None:
    """The action sets what the script reads, from inputs that the action declares."""
    (step,) = ACTION["runs"]["steps"]
    read = set(re.findall(r"\$\{?([A-Z_]{2,})", (FOLDER / "run.sh").read_text("utf-8"))) - {"TRAINYARD_TOKEN"}
    assert read <= set(step["env"])
    named = {name for value in step["env"].values() for name in re.findall(r"inputs\.(\w+)", value)}
    assert named == set(ACTION["inputs"])


def test_the_workflow_of_the_page_has_ten_lines() -> None:
    """It gives the required inputs, and no other than the action declares."""
    page = (ROOT / "docs" / "agents.md").read_text("utf-8")
    found = re.search(r"^```yaml \.github/workflows/train\.yml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert found is not None
    assert len(found[1].splitlines()) == 10
    workflow = yaml.load(found[1], yaml.BaseLoader)  # which reads the key `on` as text
    given = workflow["jobs"]["train"]["steps"][1]["with"]
    required = {name for name, each in ACTION["inputs"].items() if each.get("required")}
    assert required <= set(given) <= set(ACTION["inputs"])
    assert workflow["on"] == "pull_request"

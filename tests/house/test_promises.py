"""Every declaration is used: each setting is read, and a trainer writes each metric that the app reads."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from shared.kernel.index_settings import EARLIER_NAMES
from shared.kernel.settings import SETTINGS
from shared.runs.codes import CancelCode
from shared.usage.api import WAITED

ROOT = Path(__file__).resolve().parents[2]
# Settings that the Functions host and its SDKs read: our code names them, but reads only parts of them.
IN_PARTS = re.compile(r"AzureWebJobsStorage__(blob|queue|table)ServiceUri")


@cache
def literals(folder: str) -> tuple[str, ...]:
    """The strings of the modules in this folder, read once for all settings."""
    trees = (ast.parse(path.read_text("utf-8")) for path in (ROOT / folder).rglob("*.py"))
    nodes = (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant))
    return tuple(node.value for node in nodes if isinstance(node.value, str))


@pytest.mark.parametrize("setting", [name for name in SETTINGS if not IN_PARTS.fullmatch(name)])
def test_every_setting_is_read(setting: str) -> None:
    """Besides the table of settings, code reads each setting, or a trigger is bound to it as %SETTING%."""
    bound = any(f"%{setting}%" in value for value in literals("functions"))
    assert bound or (literals("shared") + literals("functions")).count(setting) >= 2


def test_every_setting_that_is_deployed_is_known() -> None:
    """Each Trainyard setting that infra/ passes to the app is in the table, or is the earlier name of a setting."""
    passed = re.findall(r'"(TRAINYARD_\w+)": "\$\{', (ROOT / "infra" / "main.parameters.json").read_text("utf-8"))
    assert passed
    assert set(passed) - set(SETTINGS) - set(EARLIER_NAMES.values()) == set()


@pytest.mark.parametrize("metric", [WAITED, "done"])
def test_every_metric_that_the_app_reads_is_written(metric: str) -> None:
    """One of our trainers writes the metric under the same name."""
    written = re.compile(rf"[\"']?\b{metric}\b[\"']?\s*[:=]")
    assert any(written.search(path.read_text("utf-8")) for path in (ROOT / "trainers").rglob("*.py"))


@pytest.mark.parametrize("code", [code for code in CancelCode if code is not CancelCode.OTHER])
def test_every_reason_to_cancel_is_used(code: CancelCode) -> None:
    """Some code cancels runs with each reason. OTHER stands for rows without a code."""
    named = f"CancelCode.{code.name}"
    assert any(named in path.read_text("utf-8") for path in (ROOT / "shared").rglob("*.py"))

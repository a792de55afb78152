"""The deployed package under Microsoft's own runtime."""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from emulators.arm import syntax
from emulators.testing.conformance import run
from tests.infra.declared import INFRA, ROOT
from tests.infra.invocations import TABLE, settings, unpacked
from tests.runtime import python313

__all__ = ["python313"]


def test_microsofts_runtime_runs_the_package(python313: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """azure-functions-runtime finds the functions of the repository in the package, and runs one of each trigger."""
    with settings(tmp_path) as given:
        for name, value in given.items():
            monkeypatch.setenv(name, value)
        theirs = run(python313, unpacked(tmp_path), "runtime", TABLE, tmp_path)
    assert names(theirs["indexed"]) == names(run(sys.executable, ROOT, "direct", [], tmp_path)["indexed"])
    assert [outcome["error"] for outcome in theirs["outcomes"]] == [None] * len(TABLE)
    answer = base64.b64decode(theirs["outcomes"][-1]["returned"]["content"]["body"]["base64"])
    assert {drop["drop"] for drop in json.loads(answer)} == {"mnist/a", "mnist/b"}


def names(indexed: list[dict[str, Any]]) -> list[str]:
    return sorted(function["name"] for function in indexed)


def test_that_is_the_deployed_python(python313: str) -> None:
    """infra/ deploys the Python version that runs this test."""
    default = syntax.read(INFRA / "main.bicep").parameters["pythonVersion"].default
    assert default is not None
    assert f"python{syntax.literal(default)}" in str(Path(python313).resolve())

"""The deployed package under Microsoft's own runtime."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path
from typing import Any

from emulators.arm import syntax
from local import package
from tests.emulators.host.test_conformance import python313, run
from tests.infra.declared import INFRA, ROOT

__all__ = ["python313"]


def test_microsofts_runtime_indexes_the_package(python313: str, tmp_path: Path) -> None:
    """azure-functions-runtime finds the same functions in the package as our host in the repository."""
    built = package.build(tmp_path / "package")
    with zipfile.ZipFile(built.archive) as archive:
        archive.extractall(unpacked := tmp_path / "unpacked")
    theirs = run(python313, unpacked, "runtime", [], tmp_path)["indexed"]
    assert names(theirs) == names(run(sys.executable, ROOT, "direct", [], tmp_path)["indexed"])


def names(indexed: list[dict[str, Any]]) -> list[str]:
    return sorted(function["name"] for function in indexed)


def test_that_is_the_deployed_python(python313: str) -> None:
    """The version that infra/ deploys is the one on which this runs."""
    default = syntax.read(INFRA / "main.bicep").parameters["pythonVersion"].default
    assert default is not None
    assert f"python{syntax.literal(default)}" in str(Path(python313).resolve())

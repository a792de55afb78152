"""A feature is a folder and a registration line. No other module names a feature, and the rest works without it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from shared.features import FEATURES
from shared.kernel.parts import columns, one_columns, table_columns
from shared.runs.features import parts
from shared.runs.model import Run
from tests.gate.scripts import load
from tests.house.test_layers import ROOT, imports, module, within

WORKS_WITH_EVERY_FEATURE = (  # tests of modules that features extend
    "tests/contract/test_runs_contract.py",
    "tests/shared/runs/test_intake.py",
    "tests/shared/runs/test_preempted_jobs.py",
    "tests/shared/drops/test_sealing.py",
)
OF_FEATURES = ("tests/shared/elastic", "tests/shared/pipelines", "tests/shared/sweeps/test_swept_drops.py")
# The first and the last two would start a storage emulator.
FAST = ("-k", "not tables and not dies and not crash and not new_row and not older_row")
TOGETHER = tuple(FEATURES[first::3] for first in range(3))  # a third of the features each; one each at night
SCHEDULES = ("-m", "benchmarks.schedules", "--seed", "0", "--seconds", "1")
WITHOUT = os.environ.get("TRAINYARD_WITHOUT", "")  # a feature, or all; each takes minutes, so only at night
ALL = ("tests/contract", "tests/functions", "tests/shared")
TABLES_OF_ALL = (  # these list every feature's messages, kinds of runs or queues
    "tests/shared/test_features.py",
    "tests/shared/test_function_time.py",
    "tests/shared/test_messages.py",
    "tests/shared/runs/test_kinds_of_runs.py",
    "tests/shared/models/test_provenance.py",
)


@pytest.mark.parametrize("feature", FEATURES)
def test_nobody_else_names_a_feature(feature: str) -> None:
    """Outside its folder, only a feature's adapters and other features' additions to it import it; other code uses
    the declarations."""
    additions = {f"{other}.{feature.rpartition('.')[2]}" for other in FEATURES}  # other features' additions to it
    allowed = {feature, feature.replace("shared", "shared.adapters", 1), *additions}
    files = [path for folder in ("shared", "functions") for path in (ROOT / folder).rglob("*.py")]
    strangers = {
        module(path)
        for path in files
        if not within(module(path), allowed) and any(within(name, {feature}) for name in imports(path))
    }
    assert strangers == set()


def test_features_share_no_column() -> None:
    """Each part has its own column and name, which equal no column of the run and no old column of another part."""
    taken = [*columns(Run), *(each.column for each in one_columns(Run)), *(part.in_column for part in parts())]
    assert len(set(taken)) == len(taken)
    assert len({part.name for part in parts()}) == len(parts())
    assert not {part.in_column for part in parts()} & {column for part in parts() for column in part.old_columns()}


def test_a_run_is_of_its_own_size() -> None:
    """A run without features uses at most 46 columns of the table; it used 94 before features had parts."""
    assert len(table_columns(Run)) <= 46


@pytest.mark.parametrize("features", TOGETHER, ids=lambda features: " ".join(map(_last, features)))
def test_without_some_features_the_rest_works(features: Sequence[str], tmp_path: Path) -> None:
    """A copy of the repository without these features passes tests of the modules that they extend, and some
    schedules."""
    without(features, tmp_path)
    of_others = [name for name in OF_FEATURES if (tmp_path / name).exists()]
    passes(tmp_path, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *FAST, *WORKS_WITH_EVERY_FEATURE, *of_others)
    passes(tmp_path, *SCHEDULES)


@pytest.mark.skipif(not WITHOUT, reason="all tests without each feature (TRAINYARD_WITHOUT=all)")
@pytest.mark.parametrize("feature", FEATURES if WITHOUT == "all" else [f"shared.{WITHOUT}"])
def test_without_a_feature_every_other_test_passes(feature: str, tmp_path: Path) -> None:
    """The same copy passes all contracts and all tests of shared/ and functions/ that the gate runs, except tests
    that import the feature."""
    assert feature in FEATURES
    without([feature], tmp_path)
    left_out = [f"--ignore={name}" for name in TABLES_OF_ALL]
    left_out += [f"--{'deselect' if '::' in each else 'ignore-glob'}={each}" for each in load("check").LONG]
    at_a_time = ("-n", "2", "--maxfail", "20")
    passes(tmp_path, "-m", "pytest", "-q", *at_a_time, "-p", "no:cacheprovider", *left_out, *ALL, seconds=3600)


def without(features: Sequence[str], folder: Path) -> None:
    """Copy the repository without these features: without their lines, folders and adapters, other features'
    additions to them, and the tests that import any of these. The copy uses this repository's installed Azurite."""
    files = tracked()
    gone = {path for path in files if any(_is_of(path, _last(feature)) for feature in features)}
    modules = {module(ROOT / path) for path in gone if path.endswith(".py")}
    tests = {path: set(imports(ROOT / path)) for path in files if path.startswith("tests/") and path.endswith(".py")}
    while more := {
        path for path, names in tests.items() if path not in gone and any(within(n, modules) for n in names)
    }:
        gone |= more
        modules |= {module(ROOT / path) for path in more}
    assert not gone.intersection(WORKS_WITH_EVERY_FEATURE), "these import a feature"
    for path in files:
        if path not in gone and not path.startswith("page/"):
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / path, folder / path)
    node = ROOT / ".trainyard" / "node"
    if node.exists():
        (folder / ".trainyard").mkdir()
        (folder / ".trainyard" / "node").symlink_to(node.resolve(), target_is_directory=True)
    listed = folder / "shared" / "features.py"
    kept = [
        line
        for line in listed.read_text("utf-8").splitlines(keepends=True)
        if not any(f'"{each}"' in line for each in features)
    ]
    listed.write_text("".join(kept), "utf-8")


def _last(feature: str) -> str:
    return feature.rpartition(".")[2]


def _is_of(path: str, name: str) -> bool:
    """Return whether the file belongs to the feature of this name, or is another feature's addition to it."""
    own = path.startswith((f"shared/{name}/", f"shared/adapters/{name}/", f"tests/shared/{name}/"))
    added = {f"{feature.replace('.', '/')}/{name}.py" for feature in FEATURES}
    return own or path in added or path in (f"tests/fakes/{name}.py", f"tests/simulation/{name}.py")


def tracked() -> list[str]:
    command = ["git", "-C", str(ROOT), "ls-files", "-co", "--exclude-standard"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return [path for path in listed if (ROOT / path).is_file()]


def passes(folder: Path, *arguments: str, seconds: int = 300) -> None:
    """Run Python in the copy."""
    environment = {**os.environ, "PYTHONPATH": str(folder / "emulators" / "src")}
    ran = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=seconds,
        check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr[-2000:]

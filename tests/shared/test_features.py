"""Features: a folder and a line each. Nobody else names one, and without folder and line the rest works."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from shared.features import FEATURES
from shared.kernel.parts import columns
from shared.runs.features import parts
from shared.runs.model import Run
from tests.house.test_layers import ROOT, imports, module, within

DATES = "shared.deadlines"
# What keeps a feature's own records; they are wired where all others are.
KEEPERS = {
    "shared.sweeps": {"shared.adapters", "shared.bootstrap", "shared.ports", "shared.system", "shared.wiring"},
}
OTHERS = (  # tests of everything that dates touch
    "tests/shared/runs/test_intake.py",
    "tests/shared/runs/test_kinds_of_runs.py",
    "tests/shared/elastic/test_elastic_runs.py",
    "tests/shared/runs/test_preempted_jobs.py",
    "tests/shared/pipelines/test_pipelines.py",
    "tests/shared/sweeps/test_swept_drops.py",
    "tests/shared/drops/test_sealing.py",
    "tests/shared/money/test_budgets.py",
    "tests/shared/notices/test_notices.py",
)


@pytest.mark.parametrize("feature", FEATURES)
def test_nobody_else_names_a_feature(feature: str) -> None:
    """Outside its folder only what keeps its records imports a feature: the rest asks the declarations."""
    additions = {f"{other}.{feature.rpartition('.')[2]}" for other in FEATURES}  # what other features add to it
    allowed = {feature, *KEEPERS.get(feature, ()), *additions}
    files = [path for folder in ("shared", "functions") for path in (ROOT / folder).rglob("*.py")]
    strangers = {
        module(path)
        for path in files
        if not within(module(path), allowed) and any(within(name, {feature}) for name in imports(path))
    }
    assert strangers == set()


def test_features_share_no_column() -> None:
    """Each part has a column and a name of its own, which is no column of the run and no old column of another part."""
    taken = [*columns(Run), *(part.in_column for part in parts())]
    assert len(set(taken)) == len(taken)
    assert len({part.name for part in parts()}) == len(parts())
    assert not {part.in_column for part in parts()} & {column for part in parts() for column in part.old_columns()}


def test_a_run_is_of_its_own_size() -> None:
    """What a run has that no feature adds takes at most 70 columns: 94 before features had parts of their own."""
    assert len(columns(Run)) <= 70


def test_without_dates_the_rest_works(tmp_path: Path) -> None:
    """A copy of the repository without the folder of dates, its line, and what tests them passes the other tests."""
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    for name in listed:
        if (ROOT / name).is_file() and not name.startswith(("page/", "docs/", f"{DATES.replace('.', '/')}/")):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tmp_path / name)
    file = tmp_path / "shared" / "features.py"
    kept = [line for line in file.read_text("utf-8").splitlines(keepends=True) if f'"{DATES}"' not in line]
    file.write_text("".join(kept), "utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *OTHERS]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False)
    assert ran.returncode == 0, ran.stdout[-4000:] + ran.stderr[-2000:]

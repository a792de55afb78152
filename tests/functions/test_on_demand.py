"""Imports that wait: when a module runs, and that many threads see it whole."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

import shared
from functions.on_demand import on_demand


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder whose modules are modules of shared/."""
    monkeypatch.setattr(shared, "__path__", [*shared.__path__, str(tmp_path)])
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("shared.probe_")]:
        del sys.modules[name]


def test_a_module_runs_when_a_name_of_it_is_used(write: Path) -> None:
    """Not at the import; then once, whatever is asked of it."""
    (write / "probe_names.py").write_text("import shared.kernel.errors\nRUNS = [1]\ndef double(x): return 2 * x\n")
    with on_demand():
        from shared import probe_names  # type: ignore[attr-defined]

    assert "RUNS" not in probe_names.__dict__
    assert (probe_names.double(4), probe_names.RUNS) == (8, [1])
    assert type(probe_names) is type(sys)


def test_threads_see_a_module_whole(write: Path) -> None:
    """Eight threads that use it first at the same moment all find what its last line makes."""
    (write / "probe_slow.py").write_text("import time\ntime.sleep(0.05)\nREADY = True\n")
    with on_demand():
        from shared import probe_slow  # type: ignore[attr-defined]
    together = Barrier(8)

    def use() -> bool:
        together.wait(10)
        ready: bool = probe_slow.READY
        return ready

    with ThreadPoolExecutor(8) as threads:
        assert [future.result(10) for future in [threads.submit(use) for _ in range(8)]] == [True] * 8


def test_what_fails_is_told_to_each_who_uses_it(write: Path) -> None:
    """A module that can't run raises its own error, the second time too."""
    (write / "probe_broken.py").write_text("raise ValueError('broken')\n")
    with on_demand():
        from shared import probe_broken  # type: ignore[attr-defined]

    for _ in range(2):
        with pytest.raises(ValueError, match="broken"):
            _ = probe_broken.name

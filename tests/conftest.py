"""The set-up of every test: Azurite where trainyard.py installed it, cached bytecode, a temporary folder, and the
order of the files."""

from __future__ import annotations

import gc
import os
import shutil
import sys
import tempfile
from itertools import chain, groupby, zip_longest
from multiprocessing.util import Finalize
from pathlib import Path

import hypothesis
import pytest

HERE = Path(__file__).resolve().parent
# Slow files first, those that mostly wait beside those that mostly compute; all others after them.
WAITING = ("e2e", "cloud", "page", "infra")
COMPUTING = ("trainers", "elastic", "simulation")

os.environ.setdefault("EMULATORS_NODE_HOME", str(HERE.parent / ".trainyard" / "node"))
os.environ.setdefault("EMULATORS_TEST_CACHE", str(HERE.parent / ".trainyard" / "emulators"))
# Processes that tests start import the emulators of this checkout, as the tests do.
EMULATORS = HERE.parent / "emulators"
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(EMULATORS / "src"), os.environ.get("PYTHONPATH")]))
# Tests start hundreds of Python processes. With this set, as in many images for containers, each would compile PyTorch
# and Azure's SDKs anew, and three workers all tests.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# One thread each, as several workers share the cores: the threads of OpenMP would spin while they wait for one another.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# No example fails because it took long: the machine may be busy.
hypothesis.settings.register_profile("untimed", hypothesis.settings(), deadline=None)
hypothesis.settings.load_profile("untimed")


def pytest_configure(config: pytest.Config) -> None:
    """Give this run and its child processes a folder for temporary files, which is deleted with the run.

    Killed programs leave their temporary files: PyTorch's agents one each time. pytest keeps its own files for
    inspection.
    """
    gc.disable()  # until all is collected: there is nothing to free, and looking takes a third of the time
    if hasattr(config, "workerinput"):  # a worker, which has the folder of who started it
        return
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", tempfile.gettempdir())
    folder = os.environ["TMPDIR"] = tempfile.mkdtemp(prefix="trainyard-")
    Finalize(None, shutil.rmtree, (folder, True), exitpriority=-200)  # after multiprocessing's own, which lie in it
    tempfile.tempdir = None  # so that it is looked up again


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order the files so that all cores stay busy to the end when several files run at a time."""
    files = [list(tests) for _, tests in groupby(items, key=lambda item: item.path)]
    waiting, computing, others = (
        [tests for tests in files if _kind(tests[0].path) == kind] for kind in ("waiting", "computing", "other")
    )
    by_turns = (tests for pair in zip_longest(waiting, computing + others) for tests in pair if tests)
    items[:] = chain.from_iterable(by_turns)


def pytest_collection_finish() -> None:
    gc.freeze()  # what is imported stays, and is never looked through again
    gc.enable()


def _kind(path: Path) -> str:
    if path.is_relative_to(EMULATORS):
        return "waiting"
    top = path.relative_to(HERE).parts[0] if path.is_relative_to(HERE) else ""
    return "waiting" if top in WAITING else "computing" if top in COMPUTING else "other"

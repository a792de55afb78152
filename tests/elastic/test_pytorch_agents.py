"""PyTorch's own tests of its agent, over our table. PYTORCH_SOURCE in the environment names the folder with PyTorch's
source code.

The tests are published with the source only. Of tests that differ only in the backend, one is run.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
import unittest
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from torch.distributed.elastic.rendezvous.api import rendezvous_handler_registry

from emulators.testing import azurite
from trainers.elastic.handler import NAME, create

FOLDER = Path(os.environ.get("PYTORCH_SOURCE", "/nowhere"), "test", "distributed", "elastic", "agent", "server", "test")
MODULE = "local_elastic_agent_test"
OF_A_BACKEND = re.compile(r"_(c10d|etcd|etcd_v2)$")
# What PyTorch leaves out itself, of its published text: https://github.com/pytorch/pytorch, at the same path.
SOURCE = FOLDER / f"{MODULE}.py"
NAMES = re.findall(r"    def (test_\w+)", SOURCE.read_text()) if SOURCE.exists() else []
ONE_EACH = {OF_A_BACKEND.sub("", name): name for name in reversed(NAMES)}

pytestmark = [
    pytest.mark.skipif(not NAMES, reason="needs PyTorch's source code: PYTORCH_SOURCE=FOLDER"),
    pytest.mark.skipif(not find_spec("expecttest"), reason="needs expecttest, as PyTorch's tests do"),
    pytest.mark.filterwarnings("default"),  # theirs
]


@pytest.fixture(scope="module")
def theirs(account: azurite.Azurite) -> Iterator[type[unittest.TestCase]]:
    """Return PyTorch's test class, set up so that every backend name leads to our backend."""
    sys.path.insert(0, str(FOLDER))  # processes that are started import the module by its name
    test_case: Any = importlib.import_module(MODULE).LocalElasticAgentTest

    def run_with_ours(self: Any, backend: str, test_to_run: Callable[[], None]) -> None:
        self._backend, self._endpoint = NAME, account.table_url
        test_to_run()

    rendezvous_handler_registry._registry[NAME] = create
    test_case.run_test_with_backend = run_with_ours
    test_case.setUpClass = test_case.tearDownClass = classmethod(lambda cls: None)  # no etcd
    yield test_case
    del rendezvous_handler_registry._registry[NAME]
    sys.path.remove(str(FOLDER))


@pytest.mark.parametrize("name", sorted(ONE_EACH.values()) or ["no source"])
def test_their_agent_works_over_our_table(theirs: type[unittest.TestCase], name: str) -> None:
    """The test passes as it does with PyTorch's own backends."""
    result = unittest.TestResult()
    theirs(name).run(result)
    assert result.testsRun == 1
    failures = [text for _, text in (*result.failures, *result.errors)]
    assert not failures, failures[0]

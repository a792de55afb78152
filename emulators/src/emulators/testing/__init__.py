"""For tests of your own, with pytest: Azure on this machine, for the length of the run.

from emulators.testing import azure  # in conftest.py or in the test's module

def test_upload(azure):
    blobs = BlobServiceClient.from_connection_string(azure.connection_string)
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from emulators import up


@pytest.fixture(scope="session")
def azure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[up.Running]:
    """Storage, Event Grid and Azure ML, started once, on a folder of pytest.

    `azure.connection_string` is that of the storage account, `azure.env` what Microsoft's clients look at.
    """
    with up.start(tmp_path_factory.mktemp("azure")) as running:
        yield running

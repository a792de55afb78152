"""A fixture for your own pytest tests: Azure on this machine, for the whole test run.

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
    """Start storage, Event Grid and Azure ML once, in a folder of pytest.

    `azure.connection_string` belongs to the storage account, and `azure.env` has the variables that Microsoft's clients
    read.
    """
    with up.start(tmp_path_factory.mktemp("azure")) as running:
        yield running

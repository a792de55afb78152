"""The names that the files of inputs get on a node."""

from __future__ import annotations

import pytest

from emulators.azureml.kernel.errors import DataError
from emulators.azureml.kernel.sources import Web
from emulators.azureml.running.folders import file_name
from emulators.azureml.storage.blobs import Place


@pytest.mark.parametrize(
    ("place", "name"),
    [
        (Place("c", "a/50%25 off.csv"), "50%25 off.csv"),
        (Place("c", "a/b/"), "b"),
        (Web("https://x/a/50%25%20off.csv?sig=1%2f2"), "50% off.csv"),
        (Web("https://x/"), "file"),
    ],
)
def test_a_file_keeps_its_name(place: Place | Web, name: str) -> None:
    """A blob's name is unchanged, and the last part of a web address is decoded."""
    assert file_name(place) == name


@pytest.mark.parametrize("uri", ["https://x/..%2f..%2fy", "https://x/%2e%2e", "https://x/.", "https://x/a%00"])
def test_no_file_leaves_its_folder(uri: str) -> None:
    """A web address whose last part is not a file name fails the job, and nothing is written."""
    with pytest.raises(DataError, match="can't be a file's name"):
        file_name(Web(uri))

"""The journal that the blob service writes and Event Grid reads."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from emulator_tests.storage.raw import account_sas
from emulators.storage.blobs.access import BlobAccount
from emulators.storage.blobs.service import BlobService
from emulators.storage.blobs.store import Blobs
from emulators.storage.common.calls import Call, parse_query
from emulators.storage.keys import ACCOUNT, KEY

TIME = 1_800_000_000.0
Ask = Callable[..., int]


@pytest.fixture
def now() -> list[float]:
    """The current time, which a test can change."""
    return [TIME]


@pytest.fixture
def journal() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def service(tmp_path: Path, now: list[float], journal: io.StringIO) -> Iterator[BlobService]:
    with closing(Blobs(tmp_path / "blobs.sqlite", tmp_path / "blobs", lambda: now[0])) as blobs:
        yield BlobService(blobs, BlobAccount(ACCOUNT, KEY, "blob"), journal=journal)


@pytest.fixture
def ask(service: BlobService) -> Ask:
    """Send a signed request and return the status."""

    def asked(method: str, path: str, query: str = "", headers: dict[str, str] | None = None, body: bytes = b"") -> int:
        call = Call(method, f"/{ACCOUNT}/{path}", parse_query(f"{query}&{account_sas()}"), headers or {}, body)
        return asyncio.run(service.answer(call)).status

    return asked


def test_a_blob_that_is_back_from_the_archive_is_told(
    service: BlobService, ask: Ask, now: list[float], journal: io.StringIO
) -> None:
    """The event is written once, a minute after the start of the rehydration, and not for a blob that was deleted
    meanwhile."""
    ask("PUT", "box", "restype=container")
    for name in ("kept", "gone"):
        ask("PUT", f"box/{name}", headers={"x-ms-blob-type": "BlockBlob"}, body=b"123")
        for tier, status in (("Archive", 200), ("Hot", 202)):
            assert ask("PUT", f"box/{name}", "comp=tier", {"x-ms-access-tier": tier}) == status
    assert ask("DELETE", "box/gone") == 202
    before = journal.getvalue()
    for seconds in (59, 1, 60):
        now[0] += seconds
        service.purge()
    (line,) = journal.getvalue().removeprefix(before).splitlines()
    assert "/box/kept?comp=tier" in line
    assert ' 200 - "' in line

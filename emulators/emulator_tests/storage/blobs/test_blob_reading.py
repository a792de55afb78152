"""Reading blobs completely and by range."""

from __future__ import annotations

import uuid

from azure.storage.blob import ContainerClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from emulator_tests.storage.raw import Raw


def test_x_ms_range_goes_first(raw: Raw, name: str) -> None:
    """x-ms-range takes precedence over Range, because proxies may add Range."""
    assert raw.ask("GET", name, headers={"Range": "bytes=0-0", "x-ms-range": "bytes=5-5"}).body == b"5"


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=12), first=st.integers(0, 12), last=st.one_of(st.none(), st.integers(0, 14)))
def test_any_range_is_a_slice(
    container: ContainerClient, raw: Raw, content: bytes, first: int, last: int | None
) -> None:
    """A range within the blob equals Python's slice, and a range beyond the end stops at the end.

    The MD5 of the blob and the MD5 of the range are in separate headers.
    """
    if first >= len(content) or (last is not None and last < first):
        return
    path = f"{container.container_name}/{uuid.uuid4().hex}"
    raw.ask("PUT", path, headers={"x-ms-blob-type": "BlockBlob"}, body=content)
    end = len(content) if last is None else last + 1
    whole = raw.ask("GET", path).headers["Content-MD5"]
    reply = raw.ask("GET", path, headers={"Range": f"bytes={first}-{'' if last is None else last}"})
    assert (reply.status, reply.body) == (206, content[first:end])
    assert reply.headers["Content-Range"] == f"bytes {first}-{min(end, len(content)) - 1}/{len(content)}"
    assert (reply.headers["Content-MD5"], reply.headers["x-ms-blob-content-md5"]) == (None, whole)

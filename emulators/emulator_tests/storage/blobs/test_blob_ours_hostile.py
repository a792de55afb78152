"""Each odd request to our blob service gets an answer with a code and a message, and none is a 500."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from azure.storage.blob import ContainerClient, generate_blob_sas
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from emulator_tests.storage.conftest import Side
from emulator_tests.storage.raw import BLOCK_BLOB, Raw, escaped
from emulators.storage.keys import ACCOUNT, KEY


@pytest.fixture
def side(ours: Side) -> Side:
    """Our service alone, because Azurite differs here."""
    return ours


@pytest.mark.parametrize("name", ["%ff", "a%c3", "%ed%a0%80", "%c0%af"])
def test_a_name_is_utf_8(container: ContainerClient, raw: Raw, name: str) -> None:
    """A name that is not UTF-8 is refused, because two such names would become the same. Azurite answers 500."""
    reply = raw.ask("PUT", f"{container.container_name}/{name}", headers=BLOCK_BLOB, body=b"1")
    assert reply.status == 400
    assert reply.code
    assert list(container.list_blobs()) == []


@pytest.mark.parametrize("edge", ["\ud7ff", "\uffee", "\U0010ffff", "\U0010fffd"])
def test_names_at_the_edge_of_unicode(container: ContainerClient, edge: str) -> None:
    """A prefix, a folder and a marker may end in Unicode's last character."""
    names = [f"a{edge}", f"a{edge}/1", f"a{edge}/2", f"a{edge}{edge}", "b"]
    for name in names:
        container.upload_blob(name, b"1")
    assert [blob.name for blob in container.list_blobs(name_starts_with=f"a{edge}")] == names[:4]
    pages = container.list_blobs(results_per_page=1).by_page()
    assert [blob.name for page in pages for blob in page] == names
    folders = container.walk_blobs(delimiter=edge)
    assert sorted(one.name for one in folders) == [f"a{edge}", "b"]


def test_names_beyond_the_basic_plane(container: ContainerClient) -> None:
    """Names are sorted by code points. Azurite sorts by UTF-16 units."""
    names = ["z", "\ue000", "\uff5e", "🚂", "\U0010fffd"]
    for name in reversed(names):
        container.upload_blob(name, b"1")
    assert [blob.name for blob in container.list_blobs()] == names
    pages = container.list_blobs(results_per_page=1).by_page()
    assert [blob.name for page in pages for blob in page] == names


@pytest.mark.parametrize(("body", "kind"), [
    (b"", "multipart/mixed; boundary=x"),
    (b"nonsense", "multipart/mixed; boundary=x"),
    (b"--x\r\n\r\n--x--", "multipart/mixed; boundary=x"),
    (b"--x\r\nContent-Type: application/http\r\n\r\nDELETE\r\n\r\n--x--\r\n", "multipart/mixed; boundary=x"),
    (b"--x\r\nContent-Type: application/http\r\n\r\n\xff\xfe\r\n\r\n--x--\r\n", "multipart/mixed; boundary=x"),
    (b"--x--\r\n", "multipart/mixed"),
    (b"--x--\r\n", "text/plain"),
])  # fmt: skip
def test_a_batch_that_is_none(container: ContainerClient, raw: Raw, body: bytes, kind: str) -> None:
    """A malformed batch is refused, or each malformed part is."""
    container.upload_blob("a", b"1")
    reply = raw.ask("POST", container.container_name, "restype=container&comp=batch", {"Content-Type": kind}, body)
    assert reply.status in (202, 400)
    assert reply.status == 202 or reply.code
    assert [blob.name for blob in container.list_blobs()] == ["a"]


@pytest.mark.parametrize("override", [{"content_disposition": "a\r\nSet-Cookie: b"}, {"content_type": "a\nb"}])
def test_an_override_adds_no_header(container: ContainerClient, raw: Raw, override: dict[str, Any]) -> None:
    """A header override in a signed address can't add another header."""
    container.upload_blob("a", b"1")
    sas = generate_blob_sas(
        ACCOUNT, container.container_name, "a", account_key=KEY, permission="r",
        expiry=datetime.now(UTC) + timedelta(hours=1), **override,
    )  # fmt: skip
    reply = raw.ask("GET", f"{container.container_name}/a", sas, signed=False)
    assert reply.status in (200, 400)
    assert reply.headers["Set-Cookie"] is None


ODD_VALUES = st.one_of(
    st.sampled_from(["", "-1", "0", "x", "*", '"', "1e9", "99999999999999999999", "bytes=", "\u00fc", "%", "true"]),
    st.text(st.characters(min_codepoint=0x20, max_codepoint=0xFF, exclude_characters="\x7f"), max_size=8),
)
HEADERS = [
    "Range", "x-ms-range", "If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since", "x-ms-lease-id",
    "x-ms-lease-action", "x-ms-lease-duration", "x-ms-lease-break-period", "x-ms-proposed-lease-id", "x-ms-tags",
    "x-ms-access-tier", "x-ms-blob-type", "x-ms-copy-source", "x-ms-copy-action", "x-ms-content-crc64", "Content-MD5",
    "x-ms-blob-content-md5", "x-ms-blob-condition-appendpos", "x-ms-blob-condition-maxsize", "x-ms-meta-a",
    "x-ms-delete-snapshots", "x-ms-source-if-match", "x-ms-range-get-content-md5", "Content-Type", "x-ms-version",
    "x-ms-date", "x-ms-blob-content-type", "x-ms-source-range", "x-ms-requires-sync", "Origin", "Sec-Fetch-Site",
]  # fmt: skip
PARAMETERS = [
    "comp", "restype", "blockid", "blocklisttype", "prefix", "marker", "maxresults", "delimiter", "include", "snapshot",
    "timeout", "copyid", "where", "versionid", "startFrom",
]  # fmt: skip
COMPS = [
    "", "list", "block", "blocklist", "appendblock", "metadata", "properties", "tags", "tier", "lease", "copy", "acl",
    "batch", "odd",
]  # fmt: skip


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    method=st.sampled_from(["GET", "HEAD", "PUT", "POST", "DELETE", "OPTIONS"]),
    name=st.sampled_from(["", "/a", "/log", "/new"]),
    comp=st.sampled_from(COMPS),
    restype=st.sampled_from(["", "container", "service", "account"]),
    headers=st.dictionaries(st.sampled_from(HEADERS), ODD_VALUES, max_size=4),
    query=st.dictionaries(st.sampled_from(PARAMETERS), ODD_VALUES, max_size=2),
    body=st.sampled_from([b"", b"x", b"<BlockList/>", b"<Tags/>", b"<a", b"\x00\xff"]),
)
def test_no_request_is_an_error_of_ours(
    container: ContainerClient, raw: Raw, method: str, name: str, comp: str, restype: str, headers: dict[str, str],
    query: dict[str, str], body: bytes,
) -> None:  # fmt: skip
    """For any headers, parameters and bodies the answer is a success or a refusal with a code, never a 500."""
    if method == "DELETE" and not name:
        return
    raw.ask("PUT", f"{container.container_name}/a", headers=BLOCK_BLOB, body=b"hello")
    asked = {"comp": comp, "restype": restype, **query}
    text = "&".join(f"{key}={escaped(value)}" for key, value in asked.items() if value)
    sent = {key: value.strip() for key, value in headers.items()}
    reply = raw.ask(method, f"{container.container_name}{name}", text, sent, body)
    assert reply.status < 500 or reply.status == 501
    if reply.status >= 400 and reply.status != 403:  # 403 may be the guard against web pages, which has no code
        assert method == "HEAD" or reply.code

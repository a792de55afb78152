"""Names of blobs in addresses, in storage and in lists."""

from __future__ import annotations

import uuid
from urllib.parse import quote, unquote

import pytest
from azure.storage.blob import BlobServiceClient, ContainerClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from emulator_tests.storage.raw import BLOCK_BLOB, Raw

ODD = [
    "with space", " leading", "trailing ", "plus+plus", "percent%", "percent%20twenty", "%2f", "question?mark", "hash#",
    "a&b=c", "semi;colon,comma", "quote'\"", "<xml>&amp;]]>", "dollar$ at@ star*", "back`tick{brace}|pipe^",
    "bücher/größe", "數據/🚂", "e\u0301", "\u00e9", "a/b/c", "a//b", "//", "ends/", "dots...", "..a", ".hidden",
    "~tilde", "\u00a0no-break", "\u200bzero-width", "\u202eright-to-left", "x.tar.gz", "CON", "a:b", "MiXeD",
    "carriage\rreturn",
]  # fmt: skip


def test_a_name_is_the_same_everywhere(container: ContainerClient) -> None:
    """Writing, reading, listing, finding by prefix and deleting use the same name."""
    for name in ODD:
        container.upload_blob(name, name.encode())
    assert sorted(blob.name for blob in container.list_blobs()) == sorted(ODD)
    for name in ODD:
        assert container.download_blob(name).readall() == name.encode()
        assert name in [blob.name for blob in container.list_blobs(name_starts_with=name)]
        container.delete_blob(name)
    assert list(container.list_blobs()) == []


def test_names_that_look_alike_are_two(container: ContainerClient) -> None:
    """Names are case-sensitive and are not normalized."""
    names = ["a", "A", "\u00e9", "e\u0301", "a/", "a//", "a b", "a%20b", "a+b"]
    for name in names:
        container.upload_blob(name, name.encode())
    found = {blob.name: container.download_blob(blob.name).readall() for blob in container.list_blobs()}
    assert found == {name: name.encode() for name in names}


@pytest.mark.parametrize("name", ["%00", "a%01b", "%1f", "x%0b"])
def test_what_xml_cannot_hold_is_refused(container: ContainerClient, raw: Raw, name: str) -> None:
    """Characters that XML can't contain are refused, because no list could contain the name."""
    reply = raw.ask("PUT", f"{container.container_name}/{name}", headers=BLOCK_BLOB, body=b"1")
    assert reply.refusal == (400, "InvalidUri")
    assert list(container.list_blobs()) == []


@pytest.mark.parametrize("name", ["a%2fb", "a%2Fb", "%61/%62", "a/b"])
def test_an_address_may_be_escaped_more(container: ContainerClient, raw: Raw, name: str) -> None:
    """Unnecessary escapes lead to the same blob. A slash may be escaped or not."""
    assert raw.ask("PUT", f"{container.container_name}/{name}", headers=BLOCK_BLOB, body=b"1").status == 201
    assert [blob.name for blob in container.list_blobs()] == ["a/b"]
    assert raw.ask("GET", f"{container.container_name}/a/b").body == b"1"


@pytest.mark.parametrize("name", ["a\\b", "a%5Cb", "a%5cb"])
def test_a_backslash_is_a_slash(container: ContainerClient, raw: Raw, name: str) -> None:
    """A backslash is a slash as in Azure, escaped or not, also in the source of a copy."""
    assert raw.ask("PUT", f"{container.container_name}/{name}", headers=BLOCK_BLOB, body=b"1").status == 201
    assert [blob.name for blob in container.list_blobs()] == ["a/b"]
    assert raw.ask("GET", f"{container.container_name}/{name}").body == b"1"
    source = f"{raw.url}/{container.container_name}/{name}"
    copied = raw.ask("PUT", f"{container.container_name}/copy", headers={"x-ms-copy-source": source})
    assert (copied.status, raw.ask("GET", f"{container.container_name}/copy").body) == (202, b"1")


@pytest.mark.parametrize("name", ["..%2f..%2fetc%2fpasswd", "%2e%2e/%2e%2e/x", "/etc/passwd", "..%5c..%5cx", "%7e/x"])
def test_a_path_is_a_name_and_no_file(container: ContainerClient, raw: Raw, name: str) -> None:
    """A name like a file's path is a blob of this container or is refused."""
    written = raw.ask("PUT", f"{container.container_name}/{name}", headers=BLOCK_BLOB, body=b"mine")
    listed = [blob.name for blob in container.list_blobs()]
    if written.status == 201:
        assert len(listed) == 1
        assert raw.ask("GET", f"{container.container_name}/{quote(listed[0], safe='')}").body == b"mine"
    else:
        assert written.status in (400, 403, 404)
        assert listed == []


LETTERS = st.characters(min_codepoint=0x20, exclude_categories=["Cs", "Cc"], exclude_characters="\\\ufffe\uffff")
NAMES = st.lists(
    st.text(LETTERS, min_size=1, max_size=12).filter(lambda part: part.strip(".") != ""), min_size=1, max_size=3
).map("/".join)


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(names=st.sets(NAMES, min_size=1, max_size=3))
def test_any_names_come_back(blobs: BlobServiceClient, names: set[str]) -> None:
    """Any name that was written is read and listed unchanged."""
    container = blobs.create_container(f"n{uuid.uuid4().hex}")
    for name in names:
        assert unquote(container.upload_blob(name, name.encode()).url).endswith(name)
    found = {blob.name: container.download_blob(blob.name).readall() for blob in container.list_blobs()}
    container.delete_container()
    assert found == {name: name.encode() for name in names}

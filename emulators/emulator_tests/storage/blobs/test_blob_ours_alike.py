"""Both services' answers compared: the status, each header of Azurite, each element of Azurite's XML."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from xml.etree import ElementTree as ET

import pytest

from emulator_tests.storage.conftest import Side
from emulator_tests.storage.raw import BLOCK_BLOB, Raw, Reply, account_sas, escaped

# Headers of the connection or of Node.
TRANSPORT = {"connection", "keep-alive", "transfer-encoding", "content-length", "server", "date"}
# Headers of features that ours lacks, and counts that only Azurite has.
AZURITES = {"x-ms-access-tier-change-time", "x-ms-incremental-copy", "x-ms-is-hns-enabled", "x-ms-content-crc64"}
AZURITES_XML = {"AccessTierChangeTime", "IncrementalCopy", "Sealed", "StaticWebsite", "DefaultServiceVersion"}
# Headers that Azure sends only on request or only for a committed version, and Azurite always.
UNASKED_XML = {"Prefix", "Marker", "MaxResults"}
UNASKED = {"blocks that wait": {"etag", "last-modified"}, "get what was committed": {"content-md5"}}
# Microsoft's test_copy_sealed_blob_with_seal_blob_will_get_a_sealed_blob expects none for a blob that is not sealed.
UNASKED["head log"] = {"x-ms-blob-sealed"}
UNASKED_COPY = {"CopyId", "CopyStatus", "CopySource", "CopyProgress", "CopyCompletionTime"}
SAME_VALUE = {
    "content-type", "content-md5", "content-range", "content-encoding", "content-language", "content-disposition",
    "cache-control", "accept-ranges", "x-ms-blob-type", "x-ms-lease-state", "x-ms-lease-status", "x-ms-lease-duration",
    "x-ms-meta-one", "x-ms-tag-count", "x-ms-error-code", "x-ms-blob-content-md5", "x-ms-blob-committed-block-count",
    "x-ms-blob-append-offset", "x-ms-copy-status", "x-ms-copy-progress", "x-ms-access-tier", "x-ms-server-encrypted",
    "x-ms-request-server-encrypted", "x-ms-blob-content-length", "x-ms-delete-type-permanent", "x-ms-lease-time",
    "x-ms-has-immutability-policy", "x-ms-has-legal-hold", "x-ms-blob-sealed", "x-ms-access-tier-inferred",
}  # fmt: skip
STATED = {
    **BLOCK_BLOB, "x-ms-blob-content-type": "text/plain", "x-ms-blob-content-language": "de", "x-ms-tags": "k=v",
    "x-ms-blob-content-disposition": "attachment", "x-ms-blob-cache-control": "no-cache", "x-ms-meta-one": "1",
}  # fmt: skip
LEASE = "11111111-1111-1111-1111-111111111111"
LEASE_HEADERS = {"x-ms-lease-action": "acquire", "x-ms-lease-duration": "-1", "x-ms-proposed-lease-id": LEASE}
LIST = "restype=container&comp=list"
BLOCKS = b'<?xml version="1.0" encoding="utf-8"?><BlockList><Latest>AAAA</Latest></BlockList>'


@dataclass(frozen=True)
class Step:
    """A request. `{c}` stands for the container's name, and `{url}` for the account's address."""

    method: str
    name: str = "{c}"
    query: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""


def step(method: str, name: str, query: str = "", headers: dict[str, str] | None = None, body: bytes = b"") -> Step:
    return Step(method, name, query, tuple((headers or {}).items()), body)


STEPS = {
    "create container": step("PUT", "{c}", "restype=container", {"x-ms-meta-one": "1"}),
    "create it again": step("PUT", "{c}", "restype=container"),
    "container's properties": step("HEAD", "{c}", "restype=container"),
    "containers": step("GET", "", "comp=list&prefix={c}&include=metadata"),
    "put blob": step("PUT", "{c}/a", "", STATED, b"hello"),
    "put blob only if new": step("PUT", "{c}/a", "", {**BLOCK_BLOB, "If-None-Match": "*"}, b"hello"),
    "put plain": step("PUT", "{c}/d/plain", "", BLOCK_BLOB, b""),
    "get": step("GET", "{c}/a"),
    "head": step("HEAD", "{c}/a"),
    "get a range": step("GET", "{c}/a", "", {"Range": "bytes=1-2"}),
    "get a range with MD5": step("GET", "{c}/a", "", {"Range": "bytes=1-2", "x-ms-range-get-content-md5": "true"}),
    "get beyond": step("GET", "{c}/a", "", {"Range": "bytes=9-"}),
    "get what is missing": step("GET", "{c}/missing"),
    "head what is missing": step("HEAD", "{c}/missing"),
    "get unless any": step("GET", "{c}/a", "", {"If-Match": '"0x1"'}),
    "set metadata": step("PUT", "{c}/a", "comp=metadata", {"x-ms-meta-one": "2"}),
    "set headers": step("PUT", "{c}/a", "comp=properties", {"x-ms-blob-content-type": "a/b"}),
    "head after": step("HEAD", "{c}/a"),
    "get tags": step("GET", "{c}/a", "comp=tags"),
    "set tier": step("PUT", "{c}/a", "comp=tier", {"x-ms-access-tier": "Cool"}),
    "stage": step("PUT", "{c}/b", "comp=block&blockid=AAAA", {}, b"block"),
    "blocks that wait": step("GET", "{c}/b", "comp=blocklist&blocklisttype=all"),
    "commit": step("PUT", "{c}/b", "comp=blocklist", {"x-ms-meta-one": "1"}, BLOCKS),
    "blocks": step("GET", "{c}/b", "comp=blocklist&blocklisttype=all"),
    "get what was committed": step("GET", "{c}/b"),
    "create log": step("PUT", "{c}/log", "", {"x-ms-blob-type": "AppendBlob"}),
    "append": step("PUT", "{c}/log", "comp=appendblock", {}, b"line"),
    "head log": step("HEAD", "{c}/log"),
    "snapshot": step("PUT", "{c}/log", "comp=snapshot"),
    "find by tags": step("GET", "{c}", "restype=container&comp=blobs&where=%22k%22%3D%27v%27"),
    "copy": step("PUT", "{c}/copy", "", {"x-ms-copy-source": "{url}/{c}/a?{sas}"}),
    "head copy": step("HEAD", "{c}/copy"),
    "lease": step("PUT", "{c}/a", "comp=lease", LEASE_HEADERS),
    "head leased": step("HEAD", "{c}/a"),
    "write leased": step("PUT", "{c}/a", "", BLOCK_BLOB, b"1"),
    "break lease": step("PUT", "{c}/a", "comp=lease", {"x-ms-lease-action": "break"}),
    "list": step("GET", "{c}", LIST),
    "list all": step("GET", "{c}", f"{LIST}&include=metadata,tags,copy,snapshots,uncommittedblobs"),
    "list folders": step("GET", "{c}", f"{LIST}&delimiter={escaped('/')}&prefix=&maxresults=2"),
    "list nothing": step("GET", "{c}", f"{LIST}&prefix=none"),
    "delete": step("DELETE", "{c}/b"),
    "delete what is missing": step("DELETE", "{c}/b"),
    "service's properties": step("GET", "", "restype=service&comp=properties"),
    "account": step("GET", "", "restype=account&comp=properties"),
    "delete container": step("DELETE", "{c}", "restype=container"),
    "list what is missing": step("GET", "{c}", LIST),
}


def answers(side: Side) -> Iterator[tuple[str, Reply]]:
    raw, words = Raw(side.blob_url), {"c": f"t{uuid.uuid4().hex[:16]}", "url": side.blob_url, "sas": account_sas("r")}

    def filled(text: str) -> str:
        return re.sub(r"\{(\w+)\}", lambda match: words[match[1]], text)

    for what, one in STEPS.items():
        headers = {name: filled(value) for name, value in one.headers}
        yield what, raw.ask(one.method, filled(one.name), filled(one.query), headers, one.body)


@pytest.fixture(scope="module")
def both(sides: dict[str, Side]) -> dict[str, tuple[Reply, Reply]]:
    theirs, ours = (dict(answers(sides[name])) for name in ("azurite", "ours"))
    return {what: (theirs[what], ours[what]) for what in STEPS}


@pytest.mark.parametrize("what", STEPS)
def test_ours_answers_as_azurite(both: dict[str, tuple[Reply, Reply]], what: str) -> None:
    """The status is equal, no header is missing, and values that depend on neither time nor place are equal."""
    theirs, ours = both[what]
    assert ours.status == theirs.status
    known = {name.lower(): value for name, value in theirs.headers.items() if name.lower() not in TRANSPORT | AZURITES}
    found = {name.lower(): value for name, value in ours.headers.items()}
    assert known.keys() - found.keys() == UNASKED.get(what, set())
    assert {name: found[name] for name in known if name in SAME_VALUE & found.keys()} == {
        name: value for name, value in known.items() if name in SAME_VALUE & found.keys()
    }


@pytest.mark.parametrize("what", STEPS)
def test_ours_has_azurites_xml(both: dict[str, tuple[Reply, Reply]], what: str) -> None:
    """Our XML has every element of Azurite's XML in the same place."""
    theirs, ours = both[what]
    if not theirs.headers.get("Content-Type", "").startswith("application/xml") or not theirs.body:
        assert (ours.body == theirs.body) or not theirs.body
        return
    missing = set(paths(ET.fromstring(theirs.body))) - set(paths(ET.fromstring(ours.body)))
    left_out = AZURITES_XML | UNASKED_XML | (set() if what == "list all" else UNASKED_COPY)
    assert {path for path in missing if not left_out & set(path.split("/"))} == set()


def paths(element: ET.Element, above: str = "") -> Iterator[str]:
    """Return the paths of an element and of all elements below it."""
    path = f"{above}/{element.tag}"
    yield path
    for one in element:
        yield from paths(one, path)

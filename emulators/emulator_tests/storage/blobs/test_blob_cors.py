"""Requests by web pages of other origins, under the account's CORS rules."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from azure.storage.blob import BlobServiceClient, ContainerClient, CorsRule

from emulator_tests.storage.conftest import PAGE
from emulator_tests.storage.raw import BLOCK_BLOB, Raw

HEADERS = ["x-ms-blob-type", "x-ms-version", "content-type"]
STRANGER = "http://stranger.test"


@pytest.fixture
def container(blobs: BlobServiceClient, container: ContainerClient) -> Iterator[ContainerClient]:
    """A container in an account with a rule for one page."""
    rule = CorsRule(
        [PAGE], ["GET", "PUT"], allowed_headers=HEADERS, exposed_headers=["x-ms-error-code"], max_age_in_seconds=60
    )
    blobs.set_service_properties(cors=[rule])
    container.upload_blob("a", b"hello")
    yield container
    blobs.set_service_properties(cors=[])


def preflight(
    raw: Raw, name: str, origin: str = PAGE, method: str = "PUT", asked: str = "x-ms-blob-type"
) -> dict[str, str]:
    reply = raw.ask(
        "OPTIONS", name, headers={
            "Origin": origin, "Access-Control-Request-Method": method, "Access-Control-Request-Headers": asked,
        }, signed=False,
    )  # fmt: skip
    found = {key.lower(): value for key, value in reply.headers.items()}
    return {"status": str(reply.status), **{key: value for key, value in found.items() if "access-control" in key}}


def test_a_browser_asks_first(container: ContainerClient, raw: Raw) -> None:
    """The preflight needs no signature and allows the page's request."""
    answer = preflight(raw, f"{container.container_name}/new", asked="x-ms-blob-type,content-type")
    assert answer["status"] == "200"
    assert answer["access-control-allow-origin"] == PAGE
    assert answer["access-control-allow-methods"] == "PUT"
    assert answer["access-control-max-age"] == "60"
    assert set(answer["access-control-allow-headers"].split(",")) == {"x-ms-blob-type", "content-type"}


@pytest.mark.parametrize("change", [
    {"origin": STRANGER},
    {"method": "DELETE"},
    {"asked": "x-other"},
])  # fmt: skip
def test_what_no_rule_allows(container: ContainerClient, raw: Raw, change: dict[str, str]) -> None:
    """A preflight for another origin, method or header is a 403 without CORS headers."""
    answer = preflight(raw, f"{container.container_name}/new", **change)
    assert answer["status"] == "403"
    assert "access-control-allow-origin" not in answer


def test_the_page_reads_the_answer(container: ContainerClient, raw: Raw) -> None:
    """Answers to uploads and downloads have the page's origin and the headers that the page's script may read."""
    name = container.container_name
    put = raw.ask("PUT", f"{name}/new", headers={**BLOCK_BLOB, "Origin": PAGE}, body=b"1")
    get = raw.ask("GET", f"{name}/a", headers={"Origin": PAGE})
    assert (put.status, get.status, get.body) == (201, 200, b"hello")
    for reply in (put, get):
        assert reply.headers["Access-Control-Allow-Origin"] == PAGE
        assert "x-ms-error-code" in reply.headers["Access-Control-Expose-Headers"]


def test_the_page_reads_errors_too(container: ContainerClient, raw: Raw) -> None:
    """A refusal has the same CORS headers as any answer."""
    reply = raw.ask("GET", f"{container.container_name}/missing", headers={"Origin": PAGE})
    assert reply.refusal == (404, "BlobNotFound")
    assert reply.headers["Access-Control-Allow-Origin"] == PAGE


def test_a_strangers_page_is_refused(container: ContainerClient, raw: Raw) -> None:
    """A page of another origin gets a 403 even with a signature, and nothing is written."""
    headers = {**BLOCK_BLOB, "Origin": STRANGER}
    reply = raw.ask("PUT", f"{container.container_name}/new", headers=headers, body=b"1")
    assert reply.status == 403
    assert reply.headers["Access-Control-Allow-Origin"] is None
    assert [blob.name for blob in container.list_blobs()] == ["a"]


def test_a_rule_for_all_origins(blobs: BlobServiceClient, container: ContainerClient, raw: Raw) -> None:
    """A rule for `*` allows every page without naming its origin. The first matching rule applies."""
    every = CorsRule(["*"], ["GET"], max_age_in_seconds=60)
    named = CorsRule([PAGE], ["GET"], max_age_in_seconds=60)
    blobs.set_service_properties(cors=[named, every])
    for origin, allowed, vary in ((STRANGER, "*", None), (PAGE, PAGE, "Origin")):
        reply = raw.ask("GET", f"{container.container_name}/a", headers={"Origin": origin})
        assert (reply.headers["Access-Control-Allow-Origin"], reply.headers["Vary"]) == (allowed, vary)


def test_a_page_without_a_rule_asks_first(blobs: BlobServiceClient, container: ContainerClient, raw: Raw) -> None:
    """Without rules a preflight is refused in Azure's words. While rules exist, other answers vary by origin."""
    reply = raw.ask("GET", f"{container.container_name}/a", headers={"Origin": STRANGER})
    assert reply.headers["Vary"] == "Origin"
    blobs.set_service_properties(cors=[])
    headers = {"Origin": STRANGER, "Access-Control-Request-Method": "PUT"}
    reply = raw.ask("OPTIONS", f"{container.container_name}/new", headers=headers, signed=False)
    assert reply.refusal == (403, "CorsPreflightFailure")
    assert b"CORS not enabled or no matching rule found" in reply.body
    reply = raw.ask("OPTIONS", f"{container.container_name}/new", headers={"Origin": STRANGER}, signed=False)
    assert b"A required CORS header is not present." in reply.body


def test_another_host_is_refused(container: ContainerClient, raw: Raw) -> None:
    """A request with a foreign host name that points to this machine is refused."""
    reply = raw.ask("GET", f"{container.container_name}/a", headers={"Host": "evil.test"})
    assert reply.status == 403


def test_a_program_is_no_page(container: ContainerClient, raw: Raw) -> None:
    """The answer to a request without an origin has no CORS headers."""
    reply = raw.ask("GET", f"{container.container_name}/a")
    assert not [name for name in reply.headers if name.lower().startswith("access-control")]


def test_a_browser_that_follows_an_address(container: ContainerClient, raw: Raw) -> None:
    """A download by a signed address is allowed as a link or picture on another site, and an unsigned download is
    not."""
    headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}
    assert raw.ask("GET", f"{container.container_name}/a", headers=headers).body == b"hello"
    assert raw.ask("GET", f"{container.container_name}/a", headers=headers, signed=False).status == 403


def test_a_signed_address_is_read_from_any_page(container: ContainerClient, raw: Raw) -> None:
    """A signed GET is answered without CORS headers, so a script of another origin can't read the content."""
    for method in ("GET", "HEAD"):
        reply = raw.ask(method, f"{container.container_name}/a", headers={"Origin": STRANGER})
        assert reply.status == 200
        assert not [name for name in reply.headers if name.lower().startswith("access-control")]

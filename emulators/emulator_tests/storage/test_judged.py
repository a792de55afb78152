"""Faults of our services that other projects' test suites found. Each of these rules was broken once."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import requests
from azure.data.tables import TableServiceClient
from azure.storage.blob import (
    BlobClient,
    BlobServiceClient,
    ContainerClient,
    RehydratePriority,
    StandardBlobTier,
)
from azure.storage.queue import QueueServiceClient

from emulator_tests.storage import inside
from emulator_tests.storage.conftest import Side
from emulator_tests.storage.raw import BLOCK_BLOB, Raw, account_sas, refusal
from emulators import tokens
from emulators.storage.blobs.tag_query import condition, parse
from emulators.storage.common.identities import AUDIENCE
from emulators.storage.common.reserve import Reserve
from emulators.storage.keys import KEY

OLD = "Mon, 01 Jan 2001 00:00:00 GMT"


@pytest.fixture
def side(ours: Side) -> Side:
    return ours


@pytest.fixture
def table(tables: TableServiceClient, unique: Callable[[], str]) -> Any:
    return tables.create_table(unique())


def test_metadata_is_signed_in_azures_order(container: ContainerClient) -> None:
    """Metadata is signed in Azure's order, `_` before digits and digits before letters, so a valid request is
    accepted."""
    metadata = {"run_id": "1", "run1": "2", "runa": "3", "run_": "4"}
    container.upload_blob("a", b"", metadata=metadata)
    assert container.get_blob_client("a").get_blob_properties().metadata == metadata


@pytest.mark.parametrize(("method", "query"), [
    ("PUT", "comp=block&blockid=AAAA"),
    ("GET", "restype=container"),
    ("GET", "restype=container&comp=list"),
])  # fmt: skip
@pytest.mark.parametrize("header", ["If-Match", "If-None-Match", "If-Modified-Since", "x-ms-if-tags"])
def test_a_condition_that_is_not_looked_at_is_refused(
    blob: BlobClient, raw: Raw, method: str, query: str, header: str
) -> None:
    """A condition that the service does not check is refused, because the client would rely on it."""
    name = blob.container_name if "restype" in query else f"{blob.container_name}/{blob.blob_name}"
    value = "\"a\" = 'b'" if header == "x-ms-if-tags" else OLD if "Since" in header else '"0x1"'
    reply = raw.ask(method, name, query, {header: value}, b"1" if method == "PUT" else b"")
    assert reply.refusal == (400, "ConditionHeadersNotSupported")


def test_a_head_that_fails_tells_of_no_body(container: ContainerClient, raw: Raw) -> None:
    """A failed HEAD, and a 304, have neither a type nor a length, because .NET's client would read a missing body."""
    missing = raw.ask("HEAD", f"{container.container_name}/missing")
    assert (missing.status, missing.headers["x-ms-error-code"]) == (404, "BlobNotFound")
    etag = container.upload_blob("a", b"1").get_blob_properties().etag
    known = raw.ask("GET", f"{container.container_name}/a", headers={"If-None-Match": etag})
    assert known.status == 304
    for reply in (missing, known):
        assert reply.headers["Content-Type"] is None
        assert reply.headers["Content-Length"] in (None, "0")
        assert reply.body == b""


def test_an_archived_blob_is_not_read(container: ContainerClient) -> None:
    """An archived blob can't be read or copied until its rehydration ends, which takes some time."""
    blob = container.upload_blob("a", b"1", standard_blob_tier=StandardBlobTier.ARCHIVE)
    assert refusal(blob.download_blob) == (409, "BlobArchived")
    assert refusal(container.get_blob_client("b").start_copy_from_url, blob.url) == (409, "BlobArchived")
    blob.set_standard_blob_tier("Hot", rehydrate_priority=RehydratePriority("High"))
    assert blob.get_blob_properties().archive_status == "rehydrate-pending-to-hot"
    assert refusal(blob.download_blob) == (409, "BlobBeingRehydrated")


def test_a_lease_that_is_not_there_stops_a_first_block(container: ContainerClient) -> None:
    """Staging a first block with an unknown lease id is refused, like every other write."""
    blob = container.get_blob_client("new")
    assert refusal(blob.stage_block, "1", b"1", lease="00000000-0000-0000-0000-000000000001") == (
        412,
        "LeaseNotPresentWithBlobOperation",
    )


def test_a_batch_of_a_container_stays_in_it(blobs: BlobServiceClient, blob: BlobClient, raw: Raw) -> None:
    """A container's batch can't delete a blob of another container."""
    part = f"DELETE {raw.path(f'{blob.container_name}/{blob.blob_name}')} HTTP/1.1\r\n\r\n"
    body = f"--b\r\nContent-Type: application/http\r\nContent-ID: 0\r\n\r\n{part}\r\n--b--\r\n".encode()
    other = f"x{blob.container_name}"[:40]
    blobs.create_container(other)
    query, headers = "restype=container&comp=batch", {"Content-Type": "multipart/mixed; boundary=b"}
    reply = raw.ask("POST", other, query, headers, body)
    assert b"InvalidInput" in reply.body
    assert blob.exists()


def test_hashes_are_one_or_the_other(container: ContainerClient, raw: Raw) -> None:
    """MD5 together with CRC-64 is refused. A CRC-64 is returned in the answer."""
    both = {**BLOCK_BLOB, "Content-MD5": "xMpCOKC5I4INzFCab3WEmw==", "x-ms-content-crc64": "AAAAAAAAAAA="}
    name = f"{container.container_name}/a"
    assert raw.ask("PUT", name, headers=both, body=b"1").refusal == (400, "BothCrc64AndMd5HeaderPresent")
    empty = raw.ask("PUT", name, "comp=block&blockid=AAAA", {"x-ms-content-crc64": "AAAAAAAAAAA="})
    assert (empty.status, empty.headers["x-ms-content-crc64"]) == (201, "AAAAAAAAAAA=")


@pytest.mark.parametrize("version", ["tomorrow", "2099-01-01", "1999-01-01"])
def test_a_version_that_is_none_is_refused(raw: Raw, version: str) -> None:
    """A text that is not a version of the protocol is refused."""
    assert raw.ask("GET", "", "comp=list", {"x-ms-version": version}).refusal == (400, "InvalidHeaderValue")


@pytest.mark.parametrize(("text", "tags", "holds"), [
    ("\"a\" <> '1'", {"a": "2"}, True),
    ("\"a\" <> '1'", {"a": "1"}, False),
    ("\"a\" = '1' OR \"b\" = '2'", {"b": "2"}, True),
    ("\"a\" = '1' AND \"c\" = '3' OR \"b\" = '2'", {"a": "1"}, False),
])  # fmt: skip
def test_conditions_of_tags_know_or_and_unequal(text: str, tags: dict[str, str], holds: bool) -> None:
    """Conditions may use OR and <>, and searches may not, as in Azure."""
    assert condition(text).holds(tags) is holds
    with pytest.raises(ValueError, match="are for conditions"):
        parse(text)


def test_inserts_say_where_the_entity_is(table: Any, side: Side) -> None:
    """Answers of a transaction have the Location that @azure/data-tables reads."""
    answers: list[Any] = []
    table.create_entity({"PartitionKey": "p", "RowKey": "r"}, raw_response_hook=answers.append)
    headers = answers[0].http_response.headers
    address = f"{side.table_url}/{table.table_name}(PartitionKey='p',RowKey='r')"
    assert (headers["Location"], headers["DataServiceId"]) == (address, address)


@pytest.mark.parametrize(("text", "expected"), [
    ("true", ["1", "2"]),
    ("false", []),
    ("RowKey eq '1' and true", ["1"]),
    ("B eq True", ["1"]),
    ("B", ["1"]),
])  # fmt: skip
def test_filters_know_truth(table: Any, text: str, expected: list[str]) -> None:
    """Filters accept booleans alone, in combinations, and in any case."""
    table.create_entity({"PartitionKey": "p", "RowKey": "1", "B": True})
    table.create_entity({"PartitionKey": "p", "RowKey": "2", "B": False})
    assert [entity["RowKey"] for entity in table.query_entities(text)] == expected


@pytest.mark.parametrize("value", [b"1e400", b"-1e999"])
def test_what_no_double_holds_is_refused(tables: TableServiceClient, table: Any, side: Side, value: bytes) -> None:
    """A number beyond the range of doubles is refused, because it would be read back as infinity."""
    entity = b'{"PartitionKey": "p", "RowKey": "r", "x": ' + value + b"}"
    assert posted(side, table.table_name, entity) == (400, "InvalidInput")


def test_a_body_is_not_read_before_its_signature(side: Side) -> None:
    """A client without write permission learns nothing about errors in the body."""
    answer = requests.post(f"{side.table_url}/sometable", data=b"no json", timeout=10)
    assert answer.status_code == 401
    batch = requests.post(f"{side.table_url}/$batch", data=b"no batch", timeout=10)
    assert batch.status_code == 401


def test_the_list_of_tables_may_end_in_a_slash(side: Side) -> None:
    """`/Tables/?sas` is the list of tables."""
    answer = requests.get(f"{side.table_url}/Tables/?{table_sas()}", headers={"Accept": "application/json"}, timeout=10)
    assert answer.status_code == 200
    assert "value" in answer.json()


def test_one_table_is_asked_for(table: Any, side: Side) -> None:
    """A table is found by its name in any case. A missing table is a 404."""
    asked = f"{side.table_url}/Tables('{{}}')?{table_sas()}"
    answers = [
        requests.get(asked.format(name), headers={"Accept": "application/json"}, timeout=10)
        for name in (table.table_name.upper(), "missing")
    ]
    assert (answers[0].status_code, answers[0].json()["TableName"]) == (200, table.table_name)
    assert (answers[1].status_code, answers[1].headers["x-ms-error-code"]) == (404, "ResourceNotFound")


def table_sas() -> str:
    from azure.core.credentials import AzureNamedKeyCredential
    from azure.data.tables import AccountSasPermissions, ResourceTypes, generate_account_sas

    from emulators.storage.keys import ACCOUNT

    types = ResourceTypes(service=True, container=True, object=True)
    rights = AccountSasPermissions(read=True, list=True, add=True)
    expiry = datetime.now(UTC) + timedelta(hours=1)
    return str(generate_account_sas(AzureNamedKeyCredential(ACCOUNT, KEY), types, rights, expiry))


def posted(side: Side, table: str, body: bytes) -> tuple[int, str]:
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    answer = requests.post(f"{side.table_url}/{table}?{table_sas()}", data=body, headers=headers, timeout=10)
    return answer.status_code, answer.headers.get("x-ms-error-code", "")


def test_cors_of_queues_and_tables(side: Side, queues: QueueServiceClient) -> None:
    """A page with a rule may send requests, and without a rule no page may."""
    question = {"Origin": "http://app.test", "Access-Control-Request-Method": "GET"}
    assert requests.options(side.queue_url, headers=question, timeout=10).status_code == 403
    from azure.storage.queue import CorsRule

    queues.set_service_properties(cors=[CorsRule(["http://app.test"], ["GET"])])
    answer = requests.options(side.queue_url, headers=question, timeout=10)
    assert (answer.status_code, answer.headers["Access-Control-Allow-Origin"]) == (200, "http://app.test")
    queues.set_service_properties(cors=[])


def test_an_update_says_until_when_it_hides(side: Side, queues: QueueServiceClient, unique: Callable[[], str]) -> None:
    """An update without the required visibility timeout is refused before the message is looked up."""
    name, sas = queues.create_queue(unique()).queue_name, account_sas(services="q")
    answer = requests.put(f"{side.queue_url}/{name}/messages/any?popreceipt=AAAA&{sas}", timeout=10)
    assert (answer.status_code, answer.headers["x-ms-error-code"]) == (400, "MissingRequiredQueryParameter")


def test_alone_it_has_a_key_of_its_own(tmp_path: Path) -> None:
    """A service that runs alone has a new key. Microsoft's published key must be requested."""
    with inside.start(tmp_path) as running:
        assert KEY not in running.connection_string
        with BlobServiceClient.from_connection_string(running.connection_string) as client:
            client.create_container("own")


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """The error names the folder and does not mention another process."""
    blocked = tmp_path / "state"
    blocked.write_text("a file")
    with pytest.raises(FileExistsError, match="state"), inside.start(tmp_path):
        pass


def test_a_reserve_is_spent_once(tmp_path: Path) -> None:
    """The disk space for deletions is reserved until a deletion needs it, and is reserved again later."""
    reserve = Reserve(tmp_path)
    assert (tmp_path / "reserve").stat().st_size > 1_000_000
    assert reserve.spend()
    assert not reserve.spend()
    assert not (tmp_path / "reserve").exists()
    reserve.keep()
    assert reserve.spend()


def test_tokens_open_blobs_and_queues_as_their_roles_allow(tmp_path: Path) -> None:
    """An identity with a reader role on one container reads there and nowhere else."""
    key, reader = "k" * 32, "11111111-1111-1111-1111-111111111111"
    data = ["Microsoft.Storage/storageAccounts/blobServices/containers/blobs/read"]
    identities = {"key": key, "grants": [{"principal": reader, "container": "mine", "data_actions": data}]}
    with inside.start(tmp_path, identities=identities) as running:
        with BlobServiceClient.from_connection_string(running.connection_string) as client:
            for name in ("mine", "other"):
                client.create_container(name).upload_blob("a", b"1")
        headers = {"Authorization": f"Bearer {tokens.issue(key, reader, AUDIENCE)}", "x-ms-version": "2021-12-02"}
        url = running.urls["blob_url"]
        found = {
            (method, name): requests.request(method, f"{url}/{name}/a", headers=headers, timeout=10)
            for method in ("GET", "DELETE")
            for name in ("mine", "other")
        }
        assert {what: answer.status_code for what, answer in found.items()} == {
            ("GET", "mine"): 200,
            ("GET", "other"): 403,
            ("DELETE", "mine"): 403,
            ("DELETE", "other"): 403,
        }
        wrong = requests.get(f"{url}/mine/a", headers={"Authorization": "Bearer no"}, timeout=10)
        assert wrong.status_code == 401
        assert "authorization_uri=" in wrong.headers["WWW-Authenticate"]

"""The account as Azure's Functions host uses it, with the requests of the .NET SDK.

The .NET SDK reads an answer's body as XML wherever a body seems to exist, so an answer without a body must be marked as
empty.
"""

from __future__ import annotations

import base64
import hmac
import http.client
import json
import uuid
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit
from xml.etree import ElementTree as ET

import pytest

from emulator_tests.storage.conftest import Side
from emulator_tests.storage.raw import Reply, escaped
from emulators.storage.keys import ACCOUNT, KEY

VERSIONS = {"blob": "2023-11-03", "queue": "2018-11-09", "table": "2019-02-02"}
AGENT = "azsdk-net-Storage.Blobs/12.19.1 (.NET 8.0.8; Debian GNU/Linux 12 (bookworm))"
JSON = "application/json;odata=minimalmetadata"
EMPTY = (204, 304)


def sas() -> str:
    """Return a SAS of the account for every service and all of its objects."""
    lines = [ACCOUNT, "rwdlacup", "bqt", "sco", "", "2099-01-01T00:00:00Z", "", "http,https", "2021-12-02", "", ""]
    digest = hmac.digest(base64.b64decode(KEY), "\n".join(lines).encode(), "sha256")
    text = "sv=2021-12-02&ss=bqt&srt=sco&sp=rwdlacup&se=2099-01-01T00%3A00%3A00Z&spr=http%2Chttps"
    return f"{text}&sig={escaped(base64.b64encode(digest).decode())}"


class Sdk:
    def __init__(self, side: Side) -> None:
        self.urls = {"blob": side.blob_url, "queue": side.queue_url, "table": side.table_url}

    def ask(
        self, service: str, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> Reply:
        url, reader = urlsplit(self.urls[service]), JSON if service == "table" else "application/xml"
        given = {
            "x-ms-version": VERSIONS[service],
            "Accept": reader,
            "x-ms-client-request-id": (mine := str(uuid.uuid4())),
            "x-ms-return-client-request-id": "true",
            "User-Agent": AGENT,
            **({"DataServiceVersion": "3.0"} if service == "table" else {}),
            **(headers or {}),
        }
        signed = f"{url.path}/{path}{'&' if '?' in path else '?'}{sas()}"
        connection = http.client.HTTPConnection(url.netloc, timeout=60)
        try:
            connection.request(method, signed, body=body, headers=given)
            answer = connection.getresponse()
            reply = Reply(answer.status, answer.headers, answer.read())
        finally:
            connection.close()
        assert reply.headers["x-ms-client-request-id"] == mine
        if (method == "HEAD" and reply.status >= 300) or reply.status in EMPTY:
            assert (reply.body, reply.headers["Content-Type"], reply.headers["Content-Length"]) in (
                (b"", None, None),
                (b"", None, "0"),
            )
        return reply


@pytest.fixture
def sdk(side: Side) -> Sdk:
    return Sdk(side)


@pytest.fixture
def host_id() -> str:
    return uuid.uuid4().hex


def blob(sdk: Sdk, method: str, path: str, body: bytes = b"", /, **headers: str) -> Reply:
    more = {f"x-ms-{name.replace('_', '-')}": value for name, value in headers.items()}
    more |= {"x-ms-blob-type": "BlockBlob"} if method == "PUT" and "comp=" not in path and "restype" not in path else {}
    return sdk.ask("blob", method, path, body, more)


def test_one_host_holds_the_lock_of_a_timer(sdk: Sdk, host_id: str) -> None:
    """The host requests a lease before the container exists, creates both, writes its name under the lease, and
    renews the lease. Another host is refused until the release."""
    lock = f"azure-webjobs-hosts-{host_id[:8]}/locks/{host_id}/Host.Functions.nightly_timer.Listener"
    container, lease = lock.partition("/")[0], str(uuid.uuid4())
    take = {"lease_action": "acquire", "lease_duration": "60", "proposed_lease_id": lease}
    assert blob(sdk, "PUT", f"{lock}?comp=lease", **take).refusal == (404, "ContainerNotFound")
    assert blob(sdk, "PUT", f"{container}?restype=container").status == 201
    assert blob(sdk, "PUT", f"{container}?restype=container").refusal == (409, "ContainerAlreadyExists")
    assert blob(sdk, "HEAD", lock).refusal == (404, "BlobNotFound")
    assert blob(sdk, "PUT", f"{lock}?comp=lease", **take).refusal == (404, "BlobNotFound")
    assert sdk.ask("blob", "PUT", lock, b"", {"x-ms-blob-type": "BlockBlob", "If-None-Match": "*"}).status == 201
    taken = blob(sdk, "PUT", f"{lock}?comp=lease", **take)
    assert (taken.status, taken.headers["x-ms-lease-id"]) == (201, lease)
    other = {**take, "proposed_lease_id": str(uuid.uuid4())}
    assert blob(sdk, "PUT", f"{lock}?comp=lease", **other).refusal == (409, "LeaseAlreadyPresent")
    owner = {"meta_FunctionInstance": "00000000000000000000000000000000"}
    assert blob(sdk, "PUT", f"{lock}?comp=metadata", **owner).refusal == (412, "LeaseIdMissing")
    assert blob(sdk, "PUT", f"{lock}?comp=metadata", lease_id=lease, **owner).status == 200
    seen = blob(sdk, "HEAD", lock)
    assert (seen.headers["x-ms-lease-state"], seen.headers["x-ms-meta-functioninstance"]) == ("leased", "0" * 32)
    assert blob(sdk, "PUT", f"{lock}?comp=lease", lease_action="renew", lease_id=lease).status == 200
    assert blob(sdk, "PUT", f"{lock}?comp=lease", lease_action="release", lease_id=lease).status == 200
    assert blob(sdk, "PUT", f"{lock}?comp=lease", **other).status == 201


def test_a_timers_status_and_the_keys_are_blobs_that_may_be_missing(sdk: Sdk, host_id: str) -> None:
    """A missing blob is a 404 with only a code. An existing blob is returned unchanged with its etag."""
    container = f"azure-webjobs-secrets-{host_id[:8]}"
    keys, content = f"{container}/{host_id}/host.json", json.dumps({"masterKey": {"name": "master"}}).encode()
    assert blob(sdk, "HEAD", keys).refusal == (404, "ContainerNotFound")
    assert blob(sdk, "PUT", f"{container}?restype=container").status == 201
    assert blob(sdk, "GET", keys).refusal == (404, "BlobNotFound")
    assert blob(sdk, "PUT", keys, content).status == 201
    read = blob(sdk, "GET", keys)
    assert (read.status, read.body) == (200, content)
    same = sdk.ask("blob", "GET", keys, headers={"If-None-Match": read.headers["ETag"]})
    assert same.status == 304
    late = sdk.ask("blob", "PUT", keys, b"{}", {"x-ms-blob-type": "BlockBlob", "If-Match": '"0x1"'})
    assert late.refusal == (412, "ConditionNotMet")
    listed = blob(sdk, "GET", f"{container}?restype=container&comp=list&prefix={host_id}/")
    assert [name.text for name in ET.fromstring(listed.body).iter("Name")] == [f"{host_id}/host.json"]


def test_a_queue_is_polled_before_it_is_there_and_its_poison_made_on_need(sdk: Sdk, host_id: str) -> None:
    """Sixteen messages are received for ten minutes, their timeout is renewed, they move to a new poison queue, and
    are deleted by their receipts."""
    queue, take = f"q{host_id[:12]}", "numofmessages=16&visibilitytimeout=600"
    assert sdk.ask("queue", "GET", f"{queue}/messages?{take}").refusal == (404, "QueueNotFound")
    assert sdk.ask("queue", "HEAD", f"{queue}?comp=metadata").refusal == (404, "QueueNotFound")
    text = b"<QueueMessage><MessageText>{}</MessageText></QueueMessage>"
    assert sdk.ask("queue", "POST", f"{queue}/messages", text).refusal == (404, "QueueNotFound")
    assert sdk.ask("queue", "PUT", queue).status == 201
    assert sdk.ask("queue", "PUT", queue).status == 204
    assert not list(ET.fromstring(sdk.ask("queue", "GET", f"{queue}/messages?{take}").body))
    assert sdk.ask("queue", "POST", f"{queue}/messages", text).status == 201
    message = ET.fromstring(sdk.ask("queue", "GET", f"{queue}/messages?{take}").body)[0]
    of = {name: str(message.findtext(name)) for name in ("MessageId", "PopReceipt", "DequeueCount", "MessageText")}
    assert (of["DequeueCount"], of["MessageText"]) == ("1", "{}")
    place = f"{queue}/messages/{of['MessageId']}"
    again = sdk.ask("queue", "PUT", f"{place}?popreceipt={escaped(of['PopReceipt'])}&visibilitytimeout=600")
    assert again.status == 204
    late = sdk.ask("queue", "DELETE", f"{place}?popreceipt={escaped(of['PopReceipt'])}")
    assert late.refusal == (400, "PopReceiptMismatch")
    receipt = again.headers["x-ms-popreceipt"]
    assert sdk.ask("queue", "DELETE", f"{place}?popreceipt={escaped(receipt)}").status == 204


def test_diagnostic_events_go_to_a_table_of_the_month(sdk: Sdk, host_id: str) -> None:
    """A missing table is created, filled with a batch, found by its prefix, read by keys, and deleted."""
    table = f"AzureFunctionsDiagnosticEvents{host_id[:6]}"
    made = json.dumps({"TableName": table}).encode()
    typed = {"Content-Type": "application/json", "Prefer": "return-no-content"}
    assert sdk.ask("table", "POST", "Tables", made, typed).status == 204
    assert sdk.ask("table", "POST", "Tables", made, typed).status == 409
    row: dict[str, Any] = {"PartitionKey": host_id, "RowKey": "1", "HitCount": 3, "Message": "m", "Level": 4}
    body = _batch(f"{sdk.urls['table']}/{table}", row)
    batch = {"Content-Type": "multipart/mixed; boundary=batch_1"}
    answer = sdk.ask("table", "POST", "$batch", body, batch)
    assert answer.status == 202
    assert b"HTTP/1.1 204" in answer.body
    prefix = "AzureFunctionsDiagnosticEvents"
    query = f"Tables?$format={escaped(JSON)}&$filter={escaped(f'TableName ge {chr(39)}{prefix}{chr(39)}')}"
    assert table in [one["TableName"] for one in json.loads(sdk.ask("table", "GET", query).body)["value"]]
    read = sdk.ask("table", "GET", f"{table}(PartitionKey='{host_id}',RowKey='1')?$format={escaped(JSON)}")
    assert json.loads(read.body)["HitCount"] == 3
    assert sdk.ask("table", "GET", f"{table}(PartitionKey='{host_id}',RowKey='2')").status == 404
    assert sdk.ask("table", "DELETE", f"Tables('{table}')").status == 204


def _batch(url: str, row: dict[str, Any]) -> bytes:
    keys = f"PartitionKey='{row['PartitionKey']}',RowKey='{row['RowKey']}'"
    inner = [
        *("--batch_1", "Content-Type: multipart/mixed; boundary=changeset_1", "", "--changeset_1"),
        *("Content-Type: application/http", "Content-Transfer-Encoding: binary", ""),
        *(f"PATCH {url}({keys}) HTTP/1.1", f"Accept: {JSON}", "DataServiceVersion: 3.0"),
        *("Content-Type: application/json", "", json.dumps(row)),
        *("--changeset_1--", "", "--batch_1--", ""),
    ]
    return "\r\n".join(inner).encode()

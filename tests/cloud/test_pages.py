"""A web page or another user of the machine can do nothing to a running local cloud."""

from __future__ import annotations

import json
import os
import ssl
import stat
import subprocess
import sys
import urllib.error
import urllib.request
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from azure.data.tables import TableClient
from azure.storage.blob import (
    AccountSasPermissions,
    ContainerClient,
    ResourceTypes,
    generate_account_sas,
)
from azure.storage.queue import QueueClient

from cli.setup.file_trust import Untrusted
from emulators import neighbours
from emulators.testing import azurite
from local import record
from local.cloud import Cloud
from local.declaration import Declaration

EVIL = "https://evil.example"
# The headers of a browser's POST without a preflight: none of the page's own, and text/plain.
PLAIN = {"Content-Type": "text/plain", "Accept": "application/json"}
SIMPLE = {**PLAIN, "Origin": EVIL, "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}
OTHER_PORT = {**SIMPLE, "Origin": "http://127.0.0.1:1", "Sec-Fetch-Site": "same-site"}
REBOUND = {**PLAIN, "Host": "evil.example"}  # DNS rebinding: the page takes the port for its own origin
PAGES = [SIMPLE, {**SIMPLE, "Content-Type": "application/json"}, OTHER_PORT, REBOUND]
EVENT = {"id": "1", "subject": "s", "eventType": "t", "eventTime": "2026-01-01T00:00:00Z", "data": {}}


def signature(key: str) -> str:
    """A shared access signature for everything in the account."""
    rights, kinds = AccountSasPermissions.from_string("rwdlacup"), ResourceTypes(True, True, True)  # type: ignore[no-untyped-call]  # the SDK declares no types
    end = datetime.now(UTC) + timedelta(hours=1)
    return generate_account_sas(azurite.ACCOUNT, key, kinds, rights, end, services="bqt")


def status(cloud: Cloud, url: str, headers: dict[str, str], method: str = "POST", body: bytes = b"") -> int:
    request = urllib.request.Request(url, body, headers, method=method)
    context = ssl.create_default_context(cafile=str(cloud.certs))
    try:
        with urllib.request.urlopen(request, timeout=30, context=context) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def endpoints(cloud: Cloud) -> dict[str, str]:
    """The addresses of blobs, queues and tables, by their names in a connection string."""
    return dict(part.split("=", 1) for part in cloud.connection_string.split(";") if part)


def storage_requests(cloud: Cloud, key: str) -> list[tuple[str, str, bytes]]:
    """Method, address and body of the writes that a page might try: a row, a message, a blob."""
    signed, store = signature(key), endpoints(cloud)
    row = json.dumps({"PartitionKey": "run", "RowKey": "evil", "command": "touch /tmp/evil"}).encode()
    message = b"<QueueMessage><MessageText>evil</MessageText></QueueMessage>"
    return [
        ("POST", f"{store['TableEndpoint']}/pages?{signed}", row),
        ("POST", f"{store['QueueEndpoint']}/drop-events/messages?{signed}", message),
        ("PUT", f"{store['BlobEndpoint']}/drops/mnist/evil?{signed}", b"evil"),
    ]


def stored(cloud: Cloud) -> tuple[int, int, int]:
    """The numbers of rows, messages and blobs where the page tries to write."""
    text = cloud.connection_string
    with (
        TableClient.from_connection_string(text, "pages") as table,
        QueueClient.from_connection_string(text, "drop-events") as queue,
        ContainerClient.from_connection_string(text, "drops") as drops,
    ):
        rows, blobs = list(table.list_entities()), list(drops.list_blob_names())
        return len(rows), queue.get_queue_properties().approximate_message_count or 0, len(blobs)


@pytest.fixture(scope="module")
def cloud(running: Cloud) -> Cloud:
    with TableClient.from_connection_string(running.connection_string, "pages") as table:
        table.create_table()
    return running


@pytest.mark.parametrize("headers", PAGES, ids=["page", "another type", "other port", "bent name"])
def test_a_page_cannot_write_even_with_a_signature(cloud: Cloud, headers: dict[str, str]) -> None:
    """Storage refuses a page's requests despite a valid signature: no row, message or blob is written."""
    extra = {**headers, "x-ms-blob-type": "BlockBlob"}
    before = stored(cloud)
    for method, url, body in storage_requests(cloud, cloud.storage_key):
        assert status(cloud, url, extra, method, body) == 403, url
        assert status(cloud, url, {**headers, "Access-Control-Request-Method": method}, "OPTIONS") == 403
    assert stored(cloud) == before


def test_the_same_requests_of_a_program_succeed(cloud: Cloud) -> None:
    """Storage refuses the origin: without an origin the same three requests write."""
    kinds = ("application/json", "text/plain", "text/plain")  # Azurite reads a row of its own type only
    for kind, (method, url, body) in zip(kinds, storage_requests(cloud, cloud.storage_key), strict=True):
        plain = {**PLAIN, "Content-Type": kind, "x-ms-blob-type": "BlockBlob"}
        assert status(cloud, url, plain, method, body) == 201, url


def test_the_published_key_opens_nothing(cloud: Cloud) -> None:
    """The well-known key of Azurite does not work here: this account has its own key, stored beside its data."""
    plain = {**PLAIN, "x-ms-blob-type": "BlockBlob"}
    for method, url, body in storage_requests(cloud, azurite.KEY):
        assert status(cloud, url, plain, method, body) == 403
    kept = cloud.home / "storage" / "account.key"
    assert kept.read_text() == cloud.storage_key


@pytest.mark.parametrize("headers", PAGES, ids=["page", "another type", "other port", "bent name"])
def test_a_page_cannot_call_the_other_ports(cloud: Cloud, headers: dict[str, str]) -> None:
    """The app, the host's own endpoints, Event Grid and Azure ML answer a page with 403, and do nothing."""
    app = cloud.api.removesuffix("/api")
    workspace, key = f"{cloud.azureml}{cloud.record.workspace_id}", {"aeg-sas-key": "x"}
    assert status(cloud, f"{app}/api/ping", headers) == 403
    assert status(cloud, f"{app}/admin/functions/ping", headers, body=b'{"input": ""}') == 403
    assert status(cloud, f"{app}/runtime/webhooks/EventGrid?functionName=ping", headers, body=b"[]") == 403
    events = json.dumps([{**EVENT, "dataVersion": "1"}]).encode()
    topic = Declaration(record.REPOSITORY / "infra").workspace_topic
    assert status(cloud, f"{cloud.eventgrid}/topics/{topic}/api/events", headers | key, body=events) == 403
    assert status(cloud, f"{cloud.eventgrid}/control/faults", headers, body=b'{"lose": 1.0}') == 403
    assert status(cloud, f"{cloud.azureml}/control/clusters/cpu-cluster/preempt", headers, body=b'{"node": 0}') == 403
    assert status(cloud, f"{workspace}/jobs/evil", headers | {"Authorization": "Bearer x"}, "PUT", b"{}") == 403
    assert status(cloud, f"{cloud.azureml}/{azurite.ACCOUNT}/drops/x?{signature(cloud.storage_key)}", headers) == 403


def test_the_apps_own_page_needs_a_signature(cloud: Cloud) -> None:
    """The app's own page may write a blob with a signed address, as the browser's preflight allows, and no blob
    without."""
    origin = cloud.api.removesuffix("/api")
    own = {"Origin": origin, "Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors", "x-ms-blob-type": "BlockBlob"}
    url = f"{endpoints(cloud)['BlobEndpoint']}/drops/mnist/own"
    assert status(cloud, url, own, "PUT", b"own") == 401
    assert status(cloud, f"{url}?{signature(cloud.storage_key)}", own, "PUT", b"own") == 201
    asking = {
        "Origin": origin,
        "Access-Control-Request-Method": "PUT",
        "Access-Control-Request-Headers": "x-ms-blob-type",
    }
    assert status(cloud, url, asking, "OPTIONS") == 200
    assert status(cloud, url, {**asking, "Origin": EVIL}, "OPTIONS") == 403


@pytest.mark.skipif(os.name == "nt", reason="Windows keeps rights in lists")
def test_nobody_else_can_read_the_state(cloud: Cloud) -> None:
    """Folders are 0700 and files 0600, because configurations contain keys and the access log signed addresses."""
    open_to_others = [
        path
        for path in [cloud.home.parent, cloud.home, *cloud.home.rglob("*")]
        if stat.S_IMODE(path.lstat().st_mode) & 0o077 and path.suffix != ".pem" and not path.is_symlink()
    ]
    exposed = [path for path in open_to_others if path in (cloud.home, cloud.home.parent) or path.is_file()]
    assert exposed == []


@pytest.mark.skipif(os.name == "nt", reason="Windows keeps rights in lists")
@pytest.mark.parametrize("level", range(4))
def test_a_record_that_others_could_write_is_not_believed(tmp_path: Path, level: int) -> None:
    """cloud.json is used only if others can write neither it nor the folders up to the repository; the error names
    the offending path."""
    home = tmp_path / "repository" / ".trainyard" / "cloud"
    lock = record.Lock.acquire(home)
    assert lock is not None
    try:
        record.Record(os.getpid(), "http://127.0.0.1:1/api", "", "", "", "", "", "", "").write(home)
        assert record.read(home) is not None
        place = [home / "cloud.json", home, home.parent, home.parent.parent][level]
        place.chmod(place.stat().st_mode | 0o002)
        with pytest.raises(Untrusted, match=rf"{place} can be written by everyone.*chmod go-w"):
            record.read(home)
    finally:
        lock.release()


STRANGER = """
import encodings.idna, os, socket, ssl, sys  # all of it now: another user may not be able to read the library
os.setuid(int(sys.argv[1]))
for port in map(int, sys.argv[2:]):
    for wrap in (lambda plain: plain, ssl._create_unverified_context().wrap_socket):
        try:
            with wrap(socket.create_connection(("127.0.0.1", port), 10)) as talk:
                talk.sendall(b"GET /admin/host/status HTTP/1.1\\r\\nHost: 127.0.0.1\\r\\n\\r\\n")
                if talk.recv(100):
                    print(port)
        except OSError:
            pass
print("done")
"""


@pytest.mark.skipif(
    not neighbours.TABLES[0].exists() or os.getuid() != 0, reason="needs Linux, and root to be another user"
)
def test_another_user_gets_no_answer(cloud: Cloud) -> None:
    """Every port closes connections of the machine's other users before it has read anything."""
    urls = [cloud.api, cloud.azureml, cloud.eventgrid]
    urls += [url for name, url in endpoints(cloud).items() if name.endswith("Endpoint")]
    ports = [str(urlsplit(url).port) for url in urls]
    argv = [sys.executable, "-c", STRANGER]
    ours, others = (
        subprocess.run([*argv, user, *ports], capture_output=True, text=True, timeout=120) for user in ("0", "65534")
    )
    assert sorted(ours.stdout.split()) == sorted([*ports, "done"]), ours.stderr
    assert others.stdout == "done\n", others.stderr

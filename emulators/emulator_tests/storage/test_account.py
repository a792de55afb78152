"""Access: requests that Microsoft's packages sign, and requests that are changed after signing."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
import requests
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.core.exceptions import HttpResponseError
from azure.data.tables import (
    AccountSasPermissions as TableAccountPermissions,
)
from azure.data.tables import (
    ResourceTypes as TableResourceTypes,
)
from azure.data.tables import (
    TableSasPermissions,
    TableServiceClient,
    generate_table_sas,
)
from azure.data.tables import (
    generate_account_sas as table_account_sas,
)
from azure.storage.queue import (
    AccountSasPermissions,
    QueueSasPermissions,
    QueueServiceClient,
    ResourceTypes,
    generate_account_sas,
    generate_queue_sas,
)

from emulator_tests.storage import inside
from emulator_tests.storage.conftest import Side
from emulators.storage.common.account import Account
from emulators.storage.common.calls import Call, http_date
from emulators.storage.common.errors import StorageError
from emulators.storage.common.rights import Right
from emulators.storage.keys import ACCOUNT, KEY

OTHER_KEY = "b3RoZXI="
HOUR = timedelta(hours=1)


def status_of(call: Callable[..., Any], *arguments: Any) -> tuple[int | None, str]:
    with pytest.raises(HttpResponseError) as caught:
        call(*arguments)
    code = getattr(caught.value, "error_code", None)
    return caught.value.status_code, str(getattr(code, "value", code))


def queue_sas(permission: str, types: str, end: timedelta = HOUR, **options: Any) -> str:
    return str(
        generate_account_sas(
            ACCOUNT,
            KEY,
            ResourceTypes.from_string(types),  # type: ignore[no-untyped-call]
            AccountSasPermissions.from_string(permission),  # type: ignore[no-untyped-call]
            datetime.now(UTC) + end,
            **options,
        )
    )


def test_another_key_is_refused(side: Side) -> None:
    """A request signed with another key is a 403, AuthenticationFailed, for queues and tables."""
    key = AzureNamedKeyCredential(ACCOUNT, OTHER_KEY)
    with QueueServiceClient(side.queue_url, key, retry_total=0) as queues:
        assert status_of(queues.create_queue, "refused") == (403, "AuthenticationFailed")
    with TableServiceClient(side.table_url, credential=key, retry_total=0) as tables:
        assert status_of(tables.create_table, "refused")[0] == 403


@pytest.mark.parametrize(("permission", "types", "code"), [
    ("rwdlacup", "sco", None),
    ("a", "o", None),
    ("rp", "o", "AuthorizationPermissionMismatch"),
    ("a", "sc", "AuthorizationResourceTypeMismatch"),
])  # fmt: skip
def test_an_account_sas_allows_what_it_says(
    side: Side, queues: QueueServiceClient, unique: Callable[[], str], permission: str, types: str, code: str | None
) -> None:
    """Sending needs `a` on objects. Anything less is a 403 with the reason as its code."""
    name = queues.create_queue(unique()).queue_name
    with QueueServiceClient(side.queue_url, AzureSasCredential(queue_sas(permission, types)), retry_total=0) as guest:
        client = guest.get_queue_client(name)
        if code is None:
            assert client.send_message("x").id
        else:
            assert status_of(client.send_message, "x") == (403, code)


@pytest.mark.parametrize("options", [{"end": -HOUR}, {"start": datetime.now(UTC) + HOUR}])
def test_a_sas_has_its_time(side: Side, options: dict[str, Any]) -> None:
    """A SAS is refused before its start and after its end."""
    sas = queue_sas("rwdlacup", "sco", **options)
    with QueueServiceClient(side.queue_url, AzureSasCredential(sas), retry_total=0) as guest:
        assert status_of(guest.create_queue, "refused") == (403, "AuthenticationFailed")


def test_a_sas_for_https_alone_is_refused_over_http(side: Side) -> None:
    """Over HTTP a SAS for HTTPS is a 403, AuthorizationProtocolMismatch."""
    sas = queue_sas("rwdlacup", "sco", protocol="https")
    with QueueServiceClient(side.queue_url, AzureSasCredential(sas), retry_total=0) as guest:
        assert status_of(guest.create_queue, "refused") == (403, "AuthorizationProtocolMismatch")


def test_a_sas_that_was_changed_is_refused(side: Side) -> None:
    """Adding permissions to a SAS invalidates its signature."""
    sas = queue_sas("r", "sco").replace("sp=r&", "sp=rwdlacup&")
    assert "rwdlacup" in sas
    with QueueServiceClient(side.queue_url, AzureSasCredential(sas), retry_total=0) as guest:
        assert status_of(guest.create_queue, "refused") == (403, "AuthenticationFailed")


def test_a_queues_own_sas(side: Side, queues: QueueServiceClient, unique: Callable[[], str]) -> None:
    """A queue's SAS is valid only for this queue and its permissions."""
    name, other = (queues.create_queue(unique()).queue_name for _ in range(2))
    sas = generate_queue_sas(ACCOUNT, name, KEY, QueueSasPermissions(add=True), datetime.now(UTC) + HOUR)
    with QueueServiceClient(side.queue_url, AzureSasCredential(sas), retry_total=0) as guest:
        guest.get_queue_client(name).send_message("x")
        assert status_of(guest.get_queue_client(name).peek_messages)[0] == 403
        assert status_of(guest.get_queue_client(other).send_message, "x")[0] == 403


def test_a_tables_own_sas(side: Side, tables: TableServiceClient, unique: Callable[[], str]) -> None:
    """A table's SAS is valid only for this table and its permissions, and an account SAS for its permissions."""
    name, other = (tables.create_table(unique()).table_name for _ in range(2))
    key = AzureNamedKeyCredential(ACCOUNT, KEY)
    end = datetime.now(UTC) + HOUR
    own = generate_table_sas(key, name, permission=TableSasPermissions(read=True, add=True), expiry=end)
    with TableServiceClient(side.table_url, credential=AzureSasCredential(own), retry_total=0) as guest:
        mine = guest.get_table_client(name)
        mine.create_entity({"PartitionKey": "p", "RowKey": "r"})
        assert mine.get_entity("p", "r")
        assert status_of(lambda: mine.delete_entity("p", "r"))[0] == 403
        assert status_of(lambda: guest.get_table_client(other).get_entity("p", "r"))[0] == 403
    whole = table_account_sas(key, TableResourceTypes(object=True), TableAccountPermissions(read=True), end)
    with TableServiceClient(side.table_url, credential=AzureSasCredential(whole), retry_total=0) as guest:
        assert guest.get_table_client(name).get_entity("p", "r")
        assert (
            status_of(lambda: guest.get_table_client(name).create_entity({"PartitionKey": "p", "RowKey": "2"}))[0]
            == 403
        )


def test_an_old_request_is_refused() -> None:
    """A signed request can't be replayed later, because its date must be within 15 minutes of now."""
    call = Call("GET", f"/{ACCOUNT}", {}, {"x-ms-date": "Sat, 21 Nov 2026 12:00:00 GMT"}, b"")
    made = datetime(2026, 11, 21, 12, tzinfo=UTC).timestamp()
    for late, allowed in ((899, True), (-899, True), (901, False), (-901, False)):
        account = Account(ACCOUNT, KEY, "queue", partial(float, made + late))
        signed = {
            **call.headers,
            "Authorization": f"SharedKey {ACCOUNT}:{account.sign(account._text(call, 'SharedKey'))}",
        }
        request = Call(call.method, call.path, call.query, signed, b"")
        if allowed:
            account.admit(request, Right("s", ("r",)))
        else:
            with pytest.raises(StorageError, match="AuthenticationFailed"):
                account.admit(request, Right("s", ("r",)))


@pytest.mark.parametrize(("change", "allowed"), [
    ({}, True),
    ({"body": b"other"}, True),  # the content is not signed, only its length
    ({"method": "DELETE"}, False),
    ({"path": f"/{ACCOUNT}/other/messages"}, False),
    ({"query": {"visibilitytimeout": "1"}}, False),
    ({"content-length": "6"}, False),
    ({"date": "Sat, 21 Nov 2026 12:00:00 GMT"}, True),  # x-ms-date stands for it
    ({"x-ms-version": "2099-01-01"}, False),
    ({"x-ms-version": "\udcff"}, False),  # a byte that is not UTF-8, as the server reads it
])  # fmt: skip
def test_every_part_is_signed(change: dict[str, Any], allowed: bool) -> None:
    """The signature covers the method, the path, the query, the standard headers and all x-ms- headers."""
    account = Account(ACCOUNT, KEY, "queue")
    date = f"{datetime.now(UTC):%a, %d %b %Y %H:%M:%S} GMT"
    headers = {"x-ms-date": date, "content-length": "5", "x-ms-version": "2021-12-02"}
    parts = {"method": "POST", "path": f"/{ACCOUNT}/q/messages", "query": {"a": "b"}, "body": b"12345"}
    signature = account.sign(account._text(Call(headers=headers, **parts), "SharedKey"))  # type: ignore[arg-type]
    headers |= {"Authorization": f"SharedKey {ACCOUNT}:{signature}"} | {k: v for k, v in change.items() if k in headers}
    call = Call(headers=headers, **{key: change.get(key, value) for key, value in parts.items()})
    if allowed:
        account.admit(call, Right("o", ("a",), "q"))
    else:
        with pytest.raises(StorageError, match="AuthenticationFailed"):
            account.admit(call, Right("o", ("a",), "q"))


def test_what_needs_a_token_takes_no_signature() -> None:
    """The error says so, instead of that the request has no signature."""
    call = Call("POST", f"/{ACCOUNT}", {"sig": "AAAA"}, {}, b"")
    with pytest.raises(StorageError) as caught:
        Account(ACCOUNT, KEY, "blob").admit_identity(call, Right("s", ("r",)))
    assert caught.value.details == {"AuthenticationErrorDetail": "Only authentication scheme Bearer is supported"}


def test_nobody_comes_in_without_a_signature(ours: Side) -> None:
    """Every kind of path in both services is a 401 or 403 in the service's own format, and changes nothing."""
    paths = ["?comp=list", "/queue", "/queue/messages", "/queue/messages/id?popreceipt=x"]
    tried = [(ours.queue_url + path, method) for path in paths for method in ("GET", "PUT", "POST", "DELETE")]
    paths = ["/Tables", "/table()", "/table(PartitionKey='p',RowKey='r')", "/$batch"]
    tried += [(ours.table_url + path, method) for path in paths for method in ("GET", "POST", "PUT", "DELETE")]
    body = {"TableName": "a1b", "PartitionKey": "p", "RowKey": "r"}
    for url, method in tried:
        wrong = {"Authorization": b"SharedKey devstoreaccount1:\xfc", "x-ms-date": http_date(time.time()).encode()}
        for headers in (dict[str, bytes](), wrong):
            answer = requests.request(method, url, json=body, headers={"If-Match": b"*", **headers}, timeout=10)
            assert answer.status_code in (400, 401, 403, 405), (url, method)
            assert answer.headers["x-ms-error-code"]


def test_an_account_of_ones_own(tmp_path: Any) -> None:
    """The account's name and key can be configured. The published name and key are then invalid."""
    with inside.start(tmp_path, account="mine", key=OTHER_KEY) as running:
        with TableServiceClient.from_connection_string(running.connection_string) as tables:
            tables.create_table("one")
            assert [table.name for table in tables.list_tables()] == ["one"]
        url = running.urls["table_url"].replace("/mine", f"/{ACCOUNT}")
        with TableServiceClient(url, credential=AzureNamedKeyCredential(ACCOUNT, KEY), retry_total=0) as tables:
            assert status_of(tables.create_table, "two")[0] == 404
    assert OTHER_KEY not in json.dumps(running.urls)

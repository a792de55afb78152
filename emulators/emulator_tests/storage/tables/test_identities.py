"""Tables with tokens: an identity has exactly the permissions of its roles, on the tables of those roles."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import jwt
import pytest
from azure.core.credentials import AccessToken, AzureNamedKeyCredential, AzureSasCredential
from azure.core.exceptions import HttpResponseError
from azure.data.tables import TableSasPermissions, TableServiceClient, UpdateMode, generate_table_sas

from emulators import certs
from emulators.arm.access import built_in
from emulators.storage import services
from emulators.storage.common.errors import StorageError
from emulators.storage.common.identities import AUDIENCE, Grant, Identities
from emulators.storage.common.rights import Right
from emulators.storage.keys import ACCOUNT
from emulators.storage.keys import KEY as STORAGE_KEY
from emulators.tokens import issue

KEY = "k" * 40
NODES, OTHERS = "nodes", "others"


class Credential:
    """A stand-in for Entra ID: a token for any resource."""

    def __init__(self, token: str) -> None:
        self._token = token

    def get_token(self, *_: str, **__: Any) -> AccessToken:
        return AccessToken(self._token, int(time.time()) + 3600)


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("certs")


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory, bundle: Path) -> Iterator[str]:
    role = next(role for role in built_in() if role.name == "Storage Table Data Contributor")
    grant = {"principal": NODES, "table": "meeting", "actions": role.actions, "data_actions": role.data_actions}
    identities = {"key": KEY, "grants": [grant]}
    home = tmp_path_factory.mktemp("storage")
    with services.start(home, published_key=True, certs=str(bundle), identities=identities) as running:
        with TableServiceClient.from_connection_string(running.connection_string) as owner:
            for name in ("meeting", "runs"):
                owner.create_table(name)
        yield str(running.part.info["table_tls_url"])


def tables(url: str, bundle: Path, token: str) -> TableServiceClient:
    authority = str(certs.ensure(bundle).bundle)
    return TableServiceClient(url, credential=Credential(token), connection_verify=authority, retry_total=0)


def refusal(url: str, bundle: Path, token: str, table: str) -> tuple[int | None, str]:
    with tables(url, bundle, token) as client, pytest.raises(HttpResponseError) as caught:
        client.get_table_client(table).upsert_entity({"PartitionKey": "a", "RowKey": "1"})
    return caught.value.status_code, str(getattr(caught.value, "error_code", "")).rpartition(".")[2]


def test_a_sas_for_https_alone_is_taken_over_https(url: str, bundle: Path) -> None:
    """A SAS that requires HTTPS (spr=https) is accepted at the TLS port."""
    key, end = AzureNamedKeyCredential(ACCOUNT, STORAGE_KEY), datetime.now(UTC) + timedelta(hours=1)
    sas = generate_table_sas(
        key, "runs", permission=TableSasPermissions(read=True, add=True), expiry=end, protocol="https"
    )
    authority = str(certs.ensure(bundle).bundle)
    with TableServiceClient(
        url, credential=AzureSasCredential(sas), connection_verify=authority, retry_total=0
    ) as guest:
        table = guest.get_table_client("runs")
        table.create_entity({"PartitionKey": "p", "RowKey": "r"})
        assert table.get_entity("p", "r")


def test_a_role_on_a_table_is_for_that_table(url: str, bundle: Path) -> None:
    """An identity with a role on a table reads, writes (also in transactions) and deletes its rows. Another table
    is forbidden."""
    token = issue(KEY, NODES, AUDIENCE)
    row = {"PartitionKey": "a", "RowKey": "1", "n": 1}
    with tables(url, bundle, token) as client:
        table = client.get_table_client("Meeting")  # the case of names does not matter
        table.create_entity(row)
        table.submit_transaction([("upsert", {**row, "n": 2}, {"mode": UpdateMode.REPLACE})])
        assert [found["n"] for found in table.query_entities("PartitionKey eq 'a'")] == [2]
        table.delete_entity("a", "1")
        with pytest.raises(HttpResponseError) as caught:
            list(client.get_table_client("runs").list_entities())
        assert caught.value.status_code == 403
    assert refusal(url, bundle, token, "runs")[0] == 403


@pytest.mark.parametrize(
    ("token", "status"),
    [
        (issue(KEY, OTHERS, AUDIENCE), 403),
        (issue("x" * 40, NODES, AUDIENCE), 401),
        (issue(KEY, NODES, "https://management.azure.com"), 401),
        (jwt.encode({"oid": NODES, "aud": AUDIENCE, "exp": 1}, KEY, "HS256"), 401),
        (jwt.encode({"oid": NODES, "aud": AUDIENCE, "exp": 1e11}, "", "none"), 401),
        ("nothing", 401),
    ],
    ids=["no role", "forged", "for another service", "out of date", "unsigned", "no token"],
)
def test_other_tokens_are_refused(url: str, bundle: Path, token: str, status: int) -> None:
    """An identity without a role is a 403, and an invalid token is a 401."""
    assert refusal(url, bundle, token, "meeting")[0] == status


@pytest.mark.parametrize(("role", "service", "letters", "allowed"), [
    ("Storage Queue Data Contributor", "queue", "a", True),
    ("Storage Queue Data Message Sender", "queue", "a", True),
    ("Storage Queue Data Message Sender", "queue", "p", False),
    ("Storage Blob Data Reader", "blob", "r", True),
    ("Storage Blob Data Reader", "blob", "w", False),
])  # fmt: skip
def test_azures_roles_allow_what_they_do_there(role: str, service: str, letters: str, allowed: bool) -> None:
    """A contributor may send messages, because its permission to write messages includes it."""
    grant = next(one for one in built_in() if one.name == role)
    identities = Identities(KEY, (Grant(NODES, grant),))
    if allowed:
        identities.check(NODES, service, Right("o", (letters,), "any"))
    else:
        with pytest.raises(StorageError, match="AuthorizationPermissionMismatch"):
            identities.check(NODES, service, Right("o", (letters,), "any"))

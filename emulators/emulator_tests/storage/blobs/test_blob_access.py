"""Access to blobs with the account's key or with a signature (SAS)."""

from __future__ import annotations

import base64
import hmac
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, quote

import pytest
from azure.storage.blob import (
    AccessPolicy,
    BlobSasPermissions,
    BlobServiceClient,
    ContainerClient,
    ContainerSasPermissions,
    generate_blob_sas,
    generate_container_sas,
)

from emulator_tests.storage.raw import BLOCK_BLOB, Raw, Reply, account_sas
from emulators.storage.keys import ACCOUNT, KEY

HOUR = timedelta(hours=1)
MISMATCH = (403, "AuthorizationPermissionMismatch")
NO_OVERWRITE = (403, "UnauthorizedBlobOverwrite")  # if only creating is allowed; Azurite has the other code


@pytest.fixture
def filled(container: ContainerClient) -> ContainerClient:
    container.upload_blob("a", b"hello")
    container.upload_blob("b", b"other")
    return container


def blob_sas(container: ContainerClient, name: str, permission: str, end: timedelta = HOUR, **options: Any) -> str:
    return generate_blob_sas(
        ACCOUNT, container.container_name, name, account_key=KEY,
        permission=BlobSasPermissions.from_string(permission), expiry=datetime.now(UTC) + end, **options,
    )  # fmt: skip


def container_sas(container: ContainerClient, permission: str = "", **options: Any) -> str:
    if permission:
        options = {"permission": permission, "expiry": datetime.now(UTC) + HOUR, **options}
    return generate_container_sas(ACCOUNT, container.container_name, account_key=KEY, **options)


# The permissions that requests need. Each request is tried with every signature below.
REQUESTS: dict[str, Callable[[Raw, str, str], Reply]] = {
    "read": lambda raw, name, sas: raw.ask("GET", f"{name}/a", sas, signed=False),
    "head": lambda raw, name, sas: raw.ask("HEAD", f"{name}/a", sas, signed=False),
    "list": lambda raw, name, sas: raw.ask("GET", name, f"restype=container&comp=list&{sas}", signed=False),
    "create": lambda raw, name, sas: raw.ask("PUT", f"{name}/new", sas, BLOCK_BLOB, b"1", signed=False),
    "overwrite": lambda raw, name, sas: raw.ask("PUT", f"{name}/a", sas, BLOCK_BLOB, b"1", signed=False),
    "stage": lambda raw, name, sas: raw.ask(
        "PUT", f"{name}/a", f"comp=block&blockid=AAAA&{sas}", body=b"1", signed=False
    ),
    "metadata": lambda raw, name, sas: raw.ask("PUT", f"{name}/a", f"comp=metadata&{sas}", signed=False),
    "tags": lambda raw, name, sas: raw.ask("GET", f"{name}/a", f"comp=tags&{sas}", signed=False),
    "delete": lambda raw, name, sas: raw.ask("DELETE", f"{name}/b", sas, signed=False),
}
READS = {"read", "head"}
WRITES = {"create", "overwrite", "stage", "metadata"}


def allowed(raw: Raw, container: ContainerClient, sas: str) -> set[str]:
    """Return the requests that this signature allows, and check that the others are refused for their permission."""
    found = set()
    for name, request in REQUESTS.items():
        reply = request(raw, container.container_name, sas)
        if reply.status < 400:
            found.add(name)
        else:
            assert reply.refusal in (MISMATCH, NO_OVERWRITE) if name == "overwrite" else reply.refusal == MISMATCH
    return found


@pytest.mark.parametrize(("permission", "expected"), [
    ("r", READS),
    ("w", WRITES),
    ("c", {"create"}),
    ("d", {"delete"}),
    ("l", {"list"}),
    ("t", {"tags"}),
    ("rwdlct", set(REQUESTS)),
])  # fmt: skip
def test_a_containers_sas(raw: Raw, filled: ContainerClient, permission: str, expected: set[str]) -> None:
    """The signature allows its permissions in its container, and nothing else."""
    assert allowed(raw, filled, container_sas(filled, permission)) == expected


@pytest.mark.parametrize(("permission", "expected"), [
    ("r", READS),
    ("w", WRITES),
    ("c", {"create"}),
    ("d", {"delete"}),
    ("l", {"list"}),
    ("rwdlct", set(REQUESTS)),
])  # fmt: skip
def test_an_accounts_sas(raw: Raw, filled: ContainerClient, permission: str, expected: set[str]) -> None:
    """The signature allows its permissions everywhere, and nothing else."""
    assert allowed(raw, filled, account_sas(permission)) == expected


@pytest.mark.parametrize(("permission", "expected"), [("r", b"hello"), ("w", None)])
def test_a_blobs_sas(raw: Raw, filled: ContainerClient, permission: str, expected: bytes | None) -> None:
    """The signature is valid only for its blob."""
    sas, name = blob_sas(filled, "a", permission), filled.container_name
    read = raw.ask("GET", f"{name}/a", sas, signed=False)
    assert read.body == expected if expected else read.refusal == MISMATCH
    assert raw.ask("GET", f"{name}/b", sas, signed=False).status == 403
    assert raw.ask("GET", name, f"restype=container&comp=list&{sas}", signed=False).status == 403
    assert raw.ask("DELETE", f"{name}/a", sas, signed=False).status == 403
    written = raw.ask("PUT", f"{name}/a", sas, BLOCK_BLOB, b"new", signed=False)
    assert (written.status == 201) == (permission == "w")


def test_a_name_is_signed_as_it_is(raw: Raw, filled: ContainerClient) -> None:
    """The signature covers the unescaped name."""
    client = filled.upload_blob("a b/ü%+.txt", b"odd")
    path = client.url.removeprefix(f"{raw.url}/")
    assert raw.ask("GET", path, blob_sas(filled, "a b/ü%+.txt", "r"), signed=False).body == b"odd"


def test_an_accounts_sas_is_for_kinds_of_things(raw: Raw, filled: ContainerClient) -> None:
    """An account's signature covers containers and blobs separately."""
    name = filled.container_name
    for types, path, query, status in (
        ("o", f"{name}/a", "", 200), ("c", f"{name}/a", "", 403), ("s", f"{name}/a", "", 403),
        ("c", name, "restype=container&comp=list&", 200), ("o", name, "restype=container&comp=list&", 403),
        ("s", "", "comp=list&", 200), ("co", "", "comp=list&", 403),
    ):  # fmt: skip
        reply = raw.ask("GET", path, query + account_sas("rl", types), signed=False)
        assert reply.status == status
        assert status == 200 or reply.code == "AuthorizationResourceTypeMismatch"


@pytest.mark.parametrize("change", [
    ("sp=r", "sp=racwd"), ("sr=b", "sr=c"), ("sig=", "sig=A"), ("se=20", "se=21"), ("sv=20", "sv=19"),
])  # fmt: skip
def test_what_was_changed_is_refused(raw: Raw, filled: ContainerClient, change: tuple[str, str]) -> None:
    """Changing any part of the signature makes it invalid."""
    sas = blob_sas(filled, "a", "r")
    assert change[0] in sas
    assert raw.ask("GET", f"{filled.container_name}/a", sas.replace(*change), signed=False).status == 403


def test_a_signature_of_an_older_version(raw: Raw, filled: ContainerClient) -> None:
    """Before 2018-11-09 the text to sign has neither the resource type nor the snapshot, and old packages still
    sign this text."""
    name, end, secret = filled.container_name, "2099-01-01T00:00:00Z", base64.b64decode(KEY)
    for version, status in (("2016-05-31", 200), ("2015-04-05", 200), ("2014-02-14", 403)):
        text = "\n".join(["r", "", end, f"/blob/{ACCOUNT}/{name}/a", "", "", "", version, *[""] * 5])
        sig = quote(base64.b64encode(hmac.digest(secret, text.encode(), "sha256")), safe="")
        query = f"sv={version}&sr=b&sp=r&se={quote(end)}&sig={sig}"
        assert raw.ask("GET", f"{name}/a", query, signed=False).status == status


def test_an_error_does_not_show_the_signature(raw: Raw, filled: ContainerClient) -> None:
    """The error of a refused request and the error of a failure do not contain the signature."""
    sas = blob_sas(filled, "a", "r")
    (signature,) = parse_qs(sas)["sig"]
    name = filled.container_name
    for reply in (
        raw.ask("GET", f"{name}/b", sas, signed=False),
        raw.ask("DELETE", f"{name}/a", sas, signed=False),
        raw.ask("GET", f"{name}/a", sas, {"If-Match": '"0x1"'}, signed=False),
    ):
        assert reply.status in (403, 412)
        assert signature not in reply.body.decode() + str(reply.headers)


def test_a_signature_may_change_the_answers_headers(raw: Raw, filled: ContainerClient) -> None:
    """The signed address sets the content type, the name and the caching that the browser sees."""
    sas = blob_sas(
        filled, "a", "r", cache_control="no-store", content_disposition='attachment; filename="ü.txt"',
        content_encoding="identity", content_language="de", content_type="text/x-other",
    )  # fmt: skip
    reply = raw.ask("GET", f"{filled.container_name}/a", sas, signed=False)
    assert reply.body == b"hello"
    assert {name: reply.headers[name] for name in ("Cache-Control", "Content-Language", "Content-Type")} == {
        "Cache-Control": "no-store", "Content-Language": "de", "Content-Type": "text/x-other",
    }  # fmt: skip
    assert reply.headers["Content-Disposition"].startswith("attachment; filename=")
    changed = sas.replace("no-store", "public")
    assert raw.ask("GET", f"{filled.container_name}/a", changed, signed=False).status == 403


def test_a_stored_policy_is_asked(raw: Raw, filled: ContainerClient) -> None:
    """A signature with a stored policy has the policy's current permissions, and becomes invalid with the policy."""
    end = datetime.now(UTC) + HOUR
    policy = AccessPolicy(ContainerSasPermissions(read=True), end, datetime.now(UTC) - HOUR)
    filled.set_container_access_policy({"one": policy})
    sas = container_sas(filled, policy_id="one")
    path = f"{filled.container_name}/a"
    assert raw.ask("GET", path, sas, signed=False).body == b"hello"
    assert raw.ask("DELETE", path, sas, signed=False).status == 403
    filled.set_container_access_policy({})
    assert raw.ask("GET", path, sas, signed=False).status == 403


@pytest.mark.parametrize("field", ["permission", "expiry", "start"])
def test_a_policy_and_a_signature_do_not_say_the_same(raw: Raw, filled: ContainerClient, field: str) -> None:
    """A field in both the stored policy and the signature is refused."""
    times: dict[str, Any] = {"expiry": datetime.now(UTC) + HOUR, "start": datetime.now(UTC) - HOUR}
    whole: dict[str, Any] = {**times, "permission": ContainerSasPermissions(read=True)}
    filled.set_container_access_policy({"one": AccessPolicy(**whole)})
    sas = container_sas(filled, policy_id="one", **{field: "r" if field == "permission" else whole[field]})
    reply = raw.ask("GET", f"{filled.container_name}/a", sas, signed=False)
    assert reply.refusal == (403, "AuthenticationFailed")
    assert b"can be associated with signature or SAS identifier but not both" in reply.body


@pytest.mark.parametrize(("addresses", "status", "code"), [
    ("127.0.0.1", 200, ""),
    ("127.0.0.0-127.0.0.9", 200, ""),
    ("10.0.0.1", 403, "AuthorizationSourceIPMismatch"),
    ("126.0.0.0-126.255.255.255", 403, "AuthorizationSourceIPMismatch"),
    ("somewhere", 403, "AuthenticationFailed"),
])  # fmt: skip
def test_a_signature_may_be_for_addresses(
    raw: Raw, filled: ContainerClient, addresses: str, status: int, code: str
) -> None:
    """A signature for an IP address, or for a range of addresses (`sip`), is valid only for these clients."""
    for sas in (blob_sas(filled, "a", "r", ip=addresses), account_sas("r", ip=addresses)):
        reply = raw.ask("GET", f"{filled.container_name}/a", sas, signed=False)
        assert reply.status == status
        assert not code or reply.code == code


@pytest.mark.parametrize("headers", [
    {"Authorization": "SharedKey devstoreaccount1:AAAA", "x-ms-date": "Mon, 01 Jan 2001 00:00:00 GMT"},
    {"Authorization": "SharedKey devstoreaccount1:AAAA"},
    {"Authorization": "SharedKey"},
    {"Authorization": "Basic YTpi"},
    {"Authorization": "Bearer x"},
    {"Authorization": ""},
    {},
])  # fmt: skip
def test_no_key_no_answer(raw: Raw, filled: ContainerClient, headers: dict[str, str]) -> None:
    """Without the key, a request is refused for any content of Authorization."""
    assert raw.ask("GET", f"{filled.container_name}/a", headers=headers, signed=False).status in (400, 401, 403)


def test_everything_is_signed_by_the_key(blobs: BlobServiceClient, filled: ContainerClient) -> None:
    """The package's signature is valid for queries, odd names, empty headers and many headers."""
    client = filled.upload_blob(
        "ü b/%25+?#.txt", b"", metadata={"a": "1", "b": " two  words ", "Z": "3"}, tags={"k": "v w"}
    )
    assert client.get_blob_properties(timeout=30).metadata == {"a": "1", "b": "two  words", "Z": "3"}
    assert [one.name for one in filled.list_blobs(name_starts_with="ü b/%", include=["metadata"])] == [client.blob_name]
    assert list(blobs.list_containers(filled.container_name, results_per_page=1))

"""What signed URLs allow, signed with the account's key and with a user delegation key."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit

import pytest
import requests
from azure.core.credentials import AccessToken
from azure.storage.blob import BlobServiceClient

from emulators import certs, tokens
from emulators.arm.access import built_in
from emulators.storage import services
from emulators.storage.common.identities import AUDIENCE
from shared.adapters.storage.account import StorageClients
from shared.adapters.storage.blobs import StorageBlobs
from shared.adapters.storage.signing import KEY_LIFE, MARGIN, AddressSigner
from tests.contract.wire import Recording

Names = Callable[[], str]


KEY = "k" * 40
APP, READER = "11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222"
ROLES = {APP: "Storage Blob Data Contributor", READER: "Storage Blob Data Reader"}


@dataclass(frozen=True)
class Identity:
    """An identity of the app or of someone else: a token for storage."""

    principal: str

    def get_token(self, *_: str, **__: object) -> AccessToken:
        return AccessToken(tokens.issue(KEY, self.principal, AUDIENCE), int(time.time()) + 3600)


@dataclass(frozen=True)
class Secure:
    """An account that accepts tokens of an identity with a role; clients use HTTPS only."""

    address: str
    bundle: str

    @contextmanager
    def service(self, transport: Recording, principal: str = APP) -> Iterator[BlobServiceClient]:
        """A client with an identity and no key."""
        transport.connection_config.verify = self.bundle
        with BlobServiceClient(
            self.address, credential=Identity(principal), transport=transport, retry_total=0
        ) as service:
            yield service


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secure]:
    home = tmp_path_factory.mktemp("oauth")
    roles = {role.name: role for role in built_in()}
    grants = [
        {"principal": principal, "actions": roles[name].actions, "data_actions": roles[name].data_actions}
        for principal, name in ROLES.items()
    ]
    identities = {"key": KEY, "grants": grants}
    with services.start(home, certs=str(home / "certs"), identities=identities) as running:
        yield Secure(str(running.part.info["blob_tls_url"]), str(certs.ensure(home / "certs").bundle))


NAME = "run-0/a b/ü#?%41.pt"


def test_a_key_signs_for_this_blob_alone(clients: StorageClients, unique: Names) -> None:
    """With a connection string the URL reads exactly this blob, as a file to save, and allows nothing else."""
    container, blobs = unique(), StorageBlobs(clients.blob)
    blobs.write(container, NAME, b"weights", "text/html")
    blobs.write(container, "other", b"secret", "text/plain")
    url = blobs.read_url(container, NAME, 60)
    got = requests.get(url, timeout=10)
    assert (got.status_code, got.content) == (200, b"weights")
    assert got.headers["content-disposition"].startswith("attachment;")
    assert requests.put(url, b"x", headers={"x-ms-blob-type": "BlockBlob"}, timeout=10).status_code == 403
    assert requests.delete(url, timeout=10).status_code == 403
    signature = url.partition("?")[2]
    assert requests.get(f"{clients.blob.url}{container}/other?{signature}", timeout=10).status_code == 403


def test_an_address_makes_this_blob_alone(clients: StorageClients, unique: Names) -> None:
    """The URL writes one blob of one name and reads nothing. It overwrites an existing blob only if signed for
    that."""
    container, blobs = unique(), StorageBlobs(clients.blob)
    blobs.write(container, "other", b"there", "text/plain")
    url = blobs.create_url(container, NAME, 60)
    head, body = {"x-ms-blob-type": "BlockBlob"}, b"code"
    assert requests.put(url, body, headers=head, timeout=10).status_code == 201
    assert requests.put(url, b"another", headers=head, timeout=10).status_code in (403, 409)
    assert requests.get(url, timeout=10).status_code == 403
    elsewhere = f"{clients.blob.url}{container}/other?{url.partition('?')[2]}"
    assert requests.put(elsewhere, body, headers=head, timeout=10).status_code == 403
    again = blobs.create_url(container, NAME, 60, replace=True)
    assert requests.put(again, b"mended", headers=head, timeout=10).status_code == 201
    assert blobs.read(container, NAME, 99) == b"mended"


def test_an_address_ends(clients: StorageClients, unique: Names) -> None:
    """A URL allows nothing after its expiry."""
    container, blobs = unique(), StorageBlobs(clients.blob)
    blobs.write(container, "a", b"x", "text/plain")
    assert requests.get(blobs.read_url(container, "a", 60), timeout=10).status_code == 200
    assert requests.get(blobs.read_url(container, "a", -1), timeout=10).status_code == 403


def test_an_identity_signs_too(secure: Secure) -> None:
    """Without a key the URL is signed with a user delegation key, and works without a credential, over HTTPS only."""
    with secure.service(Recording()) as service:
        StorageBlobs(service).write("output", NAME, b"weights", "text/plain")
        url = StorageBlobs(service).read_url("output", NAME, 60)
    got = requests.get(url, timeout=10, verify=secure.bundle)
    assert (got.status_code, got.content) == (200, b"weights")
    assert {"skoid", "ske", "sig"} <= set(parse_qs(urlsplit(url).query))
    assert parse_qs(urlsplit(url).query)["spr"] == ["https"]


def test_nobody_signs_away_more_than_they_may(secure: Secure) -> None:
    """A URL for writing fails if a reader signed it; a reader's URL for reading works."""
    with secure.service(Recording()) as service:
        StorageBlobs(service).write("output", "read", b"there", "text/plain")
    with secure.service(Recording(), READER) as service:
        url = StorageBlobs(service).create_url("output", "written", 60)
        there = StorageBlobs(service).read_url("output", "read", 60)
    answer = requests.put(url, b"x", headers={"x-ms-blob-type": "BlockBlob"}, timeout=10, verify=secure.bundle)
    assert (answer.status_code, answer.headers["x-ms-error-code"]) == (403, "AuthorizationPermissionMismatch")
    assert requests.get(there, timeout=10, verify=secure.bundle).content == b"there"


def test_a_delegation_key_is_asked_for_once_until_it_nears_its_end(secure: Secure) -> None:
    """Many URLs take one request for a key; a URL that would outlive the key gets a new key."""
    transport = Recording()
    with secure.service(transport) as service:
        signer = AddressSigner(service)
        with ThreadPoolExecutor(8) as pool:
            urls = list(pool.map(lambda i: signer.read_url("output", str(i), 60), range(50)))
        assert (len(set(urls)), len(transport.requests)) == (50, 1)
        for seconds, made in ((KEY_LIFE - 2 * MARGIN, 1), (KEY_LIFE - MARGIN / 2, 2)):
            signer.read_url("output", "a", seconds.total_seconds())
            assert len(transport.requests) == made

"""The key that signs models: a file, or a key in a stand-in for Key Vault that answers as Microsoft documents."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from azure.core.credentials import AccessToken
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, SECP256R1, SECP384R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed, decode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_public_key,
)

from cli.files.signed_model import verify
from emulators import certs
from local.signing_key import own_key
from shared.adapters.keys.signing import signer_of
from shared.kernel.errors import BadSetting, Unavailable
from shared.models.promote import promote_run
from shared.models.signature import key_digest
from shared.models.signing_keys import known_keys
from shared.models.why import chain
from tests.fakes.world import World, trainers_folder
from tests.shared.models.test_promoting import asked, fetched, trained

FIRST, SECOND = "0123456789abcdef0123456789abcdef", "fedcba9876543210fedcba9876543210"


def url64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


class Vault(BaseHTTPRequestHandler):
    """Answers GET keys/<name>/, GET keys/<name>/<version> and POST keys/<name>/<version>/sign, after the challenge
    that every first request gets. `server.versions` are the key's versions, the newest last; `server.disabled`
    are the versions that refuse to sign.

    https://learn.microsoft.com/rest/api/keyvault/keys/get-key/get-key and .../sign/sign. The refusal of a disabled
    version is quoted in https://github.com/Azure/azure-sdk-for-python/issues/45342.
    """

    server: Any

    def do_GET(self) -> None:
        version = self._version() or list(self.server.versions)[-1]
        numbers = self.server.versions[version].public_key().public_numbers()
        x, y = (url64(each.to_bytes(32, "big")) for each in (numbers.x, numbers.y))
        key = {"kid": self._kid(version), "kty": "EC", "crv": "P-256", "x": x, "y": y, "key_ops": ["sign", "verify"]}
        self._answer({"key": key, "attributes": {"enabled": version not in self.server.disabled}})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])) or b"{}")
        if not body:  # the client's first request has no body: it waits for the challenge
            self._answer({})
            return
        version = self._version()
        if version in self.server.disabled:
            words = "Operation sign is not allowed on a disabled key."
            refusal = {"code": "Forbidden", "message": words, "innererror": {"code": "KeyDisabled"}}
            self._answer({"error": refusal}, 403)
            return
        digest = base64.urlsafe_b64decode(body["value"] + "==")
        assert (body["alg"], len(digest)) == ("ES256", 32)
        r, s = decode_dss_signature(self.server.versions[version].sign(digest, ECDSA(Prehashed(SHA256()))))
        self._answer({"kid": self._kid(version), "value": url64(r.to_bytes(32, "big") + s.to_bytes(32, "big"))})

    @property
    def port(self) -> int:
        return int(self.server.server_port)

    def _version(self) -> str:
        """Return the version in the path; '' for the newest."""
        return self.path.partition("?")[0].split("/")[3]

    def _kid(self, version: str) -> str:
        return f"{self.server.address}/keys/model-signing/{version}"

    def _answer(self, body: Any, status: int = 200) -> None:
        denied = "authorization" not in {name.lower() for name in self.headers}
        content = json.dumps(body).encode()
        self.send_response(401 if denied else status)
        if denied:
            self.send_header(
                "WWW-Authenticate",
                # The client requires the resource to be a parent domain of the vault: here 0.0.1 of 127.0.0.1.
                f'Bearer authorization="https://login.microsoftonline.com/t", resource="https://0.0.1:{self.port}"',
            )
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


class Credential:
    def get_token(self, *_: str, **__: Any) -> AccessToken:
        return AccessToken("a-token", 2**40)


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    made = certs.ensure(tmp_path / "certs")
    with ThreadingHTTPServer(("127.0.0.1", 0), Vault) as server:
        server.socket = made.server_context().wrap_socket(server.socket, server_side=True)
        vault: Any = server
        vault.address = f"https://127.0.0.1:{server.server_port}"
        vault.versions, vault.disabled = {FIRST: generate_private_key(SECP256R1())}, set()
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(made.bundle))
        monkeypatch.setattr("azure.identity.DefaultAzureCredential", Credential)
        yield vault
        server.shutdown()


@pytest.fixture
def vault(server: Any) -> str:
    return f"{server.address}/keys/model-signing"


def signs(setting: str) -> bool:
    """Return whether the signature verifies with the signer's own public key; any other failure raises."""
    signer = signer_of(setting)
    key: Any = load_pem_public_key(signer.public_key())
    key.verify(signer.sign(b"statement"), b"statement", ECDSA(SHA256()))
    return True


def test_a_key_in_a_file_signs(tmp_path: Path) -> None:
    """The local cloud's key is created once, readable by its owner only, and its signatures verify with its public
    key."""
    file = own_key(tmp_path)
    assert signs(str(file))
    assert file.stat().st_mode & 0o077 == 0
    before = file.read_bytes()
    assert own_key(tmp_path).read_bytes() == before


def test_a_key_in_key_vault_signs(vault: str) -> None:
    """The vault receives the digest and returns r and s; the signature is encoded in DER, the usual format."""
    assert signs(vault)


def test_versions_of_an_earlier_version_of_the_key_stay_valid(server: Any, vault: str, tmp_path: Path) -> None:
    """After the key is rotated in Key Vault, the running process signs with the earlier version of the key, and a
    new process with the new one. Both models verify, also offline, after the earlier version is disabled."""
    (tmp_path / "trainers").mkdir()
    world = World(trainers_folder(tmp_path / "trainers"))
    before = replace(world.system, signer=signer_of(vault))
    first = promote_run(before, trained(world, "a").name, "churn", "", asked(world))
    server.versions[SECOND] = generate_private_key(SECP256R1())
    assert key_digest(before.signer.public_key()) == first.signer
    after = replace(world.system, signer=signer_of(vault))
    world.clock.advance(60)
    second = promote_run(after, trained(world, "b").name, "churn", "", asked(world))
    assert first.signer != second.signer == key_digest(after.signer.public_key())
    server.disabled.add(FIRST)
    known = known_keys(world.models, after.signer, world.clock()).keys
    keys = {sha256: key.pem.encode() for sha256, key in known.items()}
    for number, version in enumerate((first, second)):
        links = {link.link: link.state for link in chain(after, version)}
        assert links["signature"] == "good"
        assert verify(fetched(world, version, tmp_path / str(number)), keys).problems == []


def test_after_a_refusal_the_newest_version_of_the_key_signs(server: Any, vault: str) -> None:
    """A process whose version of the key was disabled reports the refusal once, and then signs with the newest
    version."""
    signer = signer_of(vault)
    before = signer.public_key()
    server.versions[SECOND] = generate_private_key(SECP256R1())
    server.disabled.add(FIRST)
    with pytest.raises(Unavailable, match="Operation sign is not allowed on a disabled key"):
        signer.sign(b"statement")
    assert signer.public_key() != before
    key: Any = load_pem_public_key(signer.public_key())
    key.verify(signer.sign(b"statement"), b"statement", ECDSA(SHA256()))


def test_what_is_no_key_is_said_by_the_settings_name(tmp_path: Path) -> None:
    """No key, no file, no PEM and another curve are each a bad setting, and the error names the setting."""
    (tmp_path / "text.pem").write_text("hello")
    other = generate_private_key(SECP384R1()).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (tmp_path / "other.pem").write_bytes(other)
    for setting in ("", str(tmp_path / "absent.pem"), str(tmp_path / "text.pem"), str(tmp_path / "other.pem")):
        with pytest.raises(BadSetting, match="TRAINYARD_SIGNING_KEY"):
            signer_of(setting).public_key()

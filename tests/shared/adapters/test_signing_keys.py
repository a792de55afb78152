"""The key that signs models: a file, or Key Vault, of which a stand-in answers as Microsoft documents it."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
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

from emulators import certs
from local.signing_key import own_key
from shared.adapters.keys.signing import signer_of
from shared.kernel.errors import BadSetting

VERSION = "0123456789abcdef0123456789abcdef"
KEY = generate_private_key(SECP256R1())


def url64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


class Vault(BaseHTTPRequestHandler):
    """GET keys/<name>/ and POST keys/<name>/<version>/sign, after the challenge that every first request gets.

    https://learn.microsoft.com/rest/api/keyvault/keys/get-key/get-key and .../sign/sign.
    """

    server: Any

    def do_GET(self) -> None:
        numbers = KEY.public_key().public_numbers()
        x, y = (url64(each.to_bytes(32, "big")) for each in (numbers.x, numbers.y))
        key = {"kid": self._kid(), "kty": "EC", "crv": "P-256", "x": x, "y": y, "key_ops": ["sign", "verify"]}
        self._answer({"key": key, "attributes": {"enabled": True}})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])) or b"{}")
        if not body:  # the client's first request has none: it waits for the challenge
            self._answer({})
            return
        digest = base64.urlsafe_b64decode(body["value"] + "==")
        assert (body["alg"], len(digest)) == ("ES256", 32)
        r, s = decode_dss_signature(KEY.sign(digest, ECDSA(Prehashed(SHA256()))))
        self._answer({"kid": self._kid(), "value": url64(r.to_bytes(32, "big") + s.to_bytes(32, "big"))})

    @property
    def port(self) -> int:
        return int(self.server.server_port)

    def _kid(self) -> str:
        return f"{self.server.address}/keys/model-signing/{VERSION}"

    def _answer(self, body: Any) -> None:
        denied = "authorization" not in {name.lower() for name in self.headers}
        content = json.dumps(body).encode()
        self.send_response(401 if denied else 200)
        if denied:
            self.send_header(
                "WWW-Authenticate",
                # The client wants its resource to be a domain above the vault's own: here 0.0.1 of 127.0.0.1.
                f'Bearer authorization="https://login.microsoftonline.com/t", resource="https://0.0.1:{self.port}"',
            )
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Quiet."""


class Credential:
    def get_token(self, *_: str, **__: Any) -> AccessToken:
        return AccessToken("a-token", 2**40)


@pytest.fixture
def vault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    made = certs.ensure(tmp_path / "certs")
    with ThreadingHTTPServer(("127.0.0.1", 0), Vault) as server:
        server.socket = made.server_context().wrap_socket(server.socket, server_side=True)
        server.address = f"https://127.0.0.1:{server.server_port}"  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(made.bundle))
        monkeypatch.setattr("azure.identity.DefaultAzureCredential", Credential)
        yield f"{server.address}/keys/model-signing"  # type: ignore[attr-defined]
        server.shutdown()


def signs(setting: str) -> bool:
    """Whether what it signs is by its own public key; anything else raises."""
    signer = signer_of(setting)
    key: Any = load_pem_public_key(signer.public_key())
    key.verify(signer.sign(b"statement"), b"statement", ECDSA(SHA256()))
    return True


def test_a_key_in_a_file_signs(tmp_path: Path) -> None:
    """The local cloud's key is made once, closed to others, and signs what its public key confirms."""
    file = own_key(tmp_path)
    assert signs(str(file))
    assert file.stat().st_mode & 0o077 == 0
    before = file.read_bytes()
    assert own_key(tmp_path).read_bytes() == before


def test_a_key_in_key_vault_signs(vault: str) -> None:
    """The vault is given the digest and gives r and s; the signature is in DER, as everybody reads it."""
    assert signs(vault)


def test_what_is_no_key_is_said_by_the_settings_name(tmp_path: Path) -> None:
    """No key, no file, no PEM and another curve are each a bad setting that names it."""
    (tmp_path / "text.pem").write_text("hello")
    other = generate_private_key(SECP384R1()).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (tmp_path / "other.pem").write_bytes(other)
    for setting in ("", str(tmp_path / "absent.pem"), str(tmp_path / "text.pem"), str(tmp_path / "other.pem")):
        with pytest.raises(BadSetting, match="TRAINYARD_SIGNING_KEY"):
            signer_of(setting).public_key()

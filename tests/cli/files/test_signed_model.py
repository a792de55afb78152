"""verify finds and names exactly the differences from the signed content."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sigstore

from cli.errors import CliError, NotFound
from cli.files.model_signature import SIGNATURE, key_digest
from cli.files.signed_model import verify
from cli.files.sigstore_identity import Identity, place, why_not
from shared.models.signature import signed
from tests.fakes.ports import FakeSigner

SIGNER, OTHER = FakeSigner(), FakeSigner()
KEYS = {key_digest(SIGNER.public_key()): SIGNER.public_key()}
FILES = {
    "models/weights.safetensors": b"w" * 5_000_000,
    "models/model.json": b"{}",
    "manifest.json": b"[]",
    "bom.json": b"",
}
ROOTS = {"trustedRoot": "trusted_root.json", "signingConfig": "signing_config.v0.2.json"}
Change = Callable[[Path], object]


def sign(folder: Path, name: str = "churn/4", signer: FakeSigner = SIGNER) -> None:
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != SIGNATURE]
    digests = {p.relative_to(folder).as_posix(): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}
    (folder / SIGNATURE).write_bytes(signed(name, digests, signer))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A fetched model."""
    for name, content in FILES.items():
        (tmp_path / "m" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "m" / name).write_bytes(content)
    sign(tmp_path / "m")
    return tmp_path / "m"


def test_a_model_of_one_file_is_named_by_a_dot(tmp_path: Path) -> None:
    """OpenSSF's releases up to 1.0.0 sign a model of one file like this; a second file is one too many."""
    (tmp_path / "model.bin").write_bytes(b"weights")
    (tmp_path / SIGNATURE).write_bytes(signed("model.bin", {".": hashlib.sha256(b"weights").hexdigest()}, SIGNER))
    assert verify(tmp_path, KEYS).problems == []
    (tmp_path / "other.bin").write_bytes(b"")
    assert {problem.file for problem in verify(tmp_path, KEYS).problems} == {".", "model.bin", "other.bin"}
    (tmp_path / "other.bin").unlink()
    (tmp_path / "model.bin").write_bytes(b"altered")
    assert [problem.what for problem in verify(tmp_path, KEYS).problems] == ["differs from what was signed"]


def flip(file: Path, at: int) -> None:
    content = bytearray(file.read_bytes())
    content[at] ^= 1
    file.write_bytes(content)


def link(folder: Path) -> None:
    """The same bytes elsewhere."""
    file = folder / "models" / "model.json"
    file.rename(folder.parent / "elsewhere")
    file.symlink_to(folder.parent / "elsewhere")


def forge(folder: Path) -> None:
    """A signature whose statement differs from the one that its key signed."""
    bundle = json.loads((folder / SIGNATURE).read_bytes())
    payload = json.loads(base64.b64decode(bundle["dsseEnvelope"]["payload"]))
    payload["subject"][0]["name"] = "churn/5"
    bundle["dsseEnvelope"]["payload"] = base64.b64encode(json.dumps(payload).encode()).decode()
    (folder / SIGNATURE).write_text(json.dumps(bundle))


def test_what_was_signed_is_confirmed(folder: Path) -> None:
    """Every file is read, and the signature names the model."""
    done = verify(folder, KEYS)
    assert (done.problems, done.signed.name, done.signed.signer) == ([], "churn/4", key_digest(SIGNER.public_key()))
    assert done.bytes == sum(map(len, FILES.values()))


@pytest.mark.parametrize(
    ("change", "file", "what"),
    [
        (lambda f: flip(f / "models/weights.safetensors", 0), "models/weights.safetensors", "differs"),
        (lambda f: flip(f / "models/weights.safetensors", 4_999_999), "models/weights.safetensors", "differs"),
        (lambda f: flip(f / "models/weights.safetensors", 4_194_304), "models/weights.safetensors", "differs"),
        (lambda f: (f / "models/model.json").unlink(), "models/model.json", "is missing"),
        (lambda f: (f / "models/more.py").write_text(""), "models/more.py", "was added"),
        (lambda f: (f / ".hidden").write_text(""), ".hidden", "was added"),
        (lambda f: (f / "models" / SIGNATURE).write_text(""), f"models/{SIGNATURE}", "was added"),
        (lambda f: (f / "manifest.json").write_bytes(b"[ ]"), "manifest.json", "differs"),
        (link, "models/model.json", "is a link"),
        (lambda f: sign(f, signer=OTHER), SIGNATURE, "was signed by someone else"),
        (forge, SIGNATURE, "was altered"),
    ],
    ids=["first byte", "last byte", "between", "missing", "added", "hidden", "second signature", "manifest", "link",
         "signer", "forged"],
)  # fmt: skip
def test_what_differs_is_named(folder: Path, change: Change, file: str, what: str) -> None:
    """One change gives one problem, with its file."""
    change(folder)
    (problem,) = verify(folder, KEYS).problems
    assert problem.file == file
    assert problem.what.startswith(what)


@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b"\xff", b'{"dsseEnvelope": 1}'])
def test_what_is_no_signature_is_said_so(folder: Path, content: bytes) -> None:
    """Any other content of model.sig is an error in words."""
    (folder / SIGNATURE).write_bytes(content)
    with pytest.raises(Exception, match="is not a readable signature"):
        verify(folder, KEYS)


def test_the_command_ends_with_its_status_and_goes_by_the_key_that_it_knows(
    server: Any, run: Callable[..., int], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The deployment's key is requested once. A different key later is not trusted, and the API may be gone."""
    server.says("/api/models/churn/versions/production", {"model": "churn", "number": 4})
    server.says("/api/model-key", {"pem": SIGNER.public_key().decode()})
    words = ("verify", "churn@production", str(folder), "--url", server.url)
    assert run(*words) == 0
    server.says("/api/model-key", {"pem": OTHER.public_key().decode()})
    sign(folder, signer=OTHER)
    assert run(*words) == 1
    assert "was signed by someone else" in capsys.readouterr().out
    sign(folder)
    server.answers.clear()
    server.says("/api/models/churn/versions/production", {"detail": "down"}, 503)
    assert run(*words) == 0
    assert "was not checked" in capsys.readouterr().err
    assert run("verify", "churn@5", str(folder), "--url", server.url) == 1
    assert "is of churn/4, not of churn/5" in capsys.readouterr().out


def test_an_identity_that_did_not_sign_is_named(folder: Path, tmp_path: Path) -> None:
    """With Sigstore's roots in a file nothing is requested. A signature by a key, or an invalid signature, has no
    identity; for a missing one the error names the command that makes it."""
    ada = Identity("ada@example.org", "https://accounts.example.org")
    with pytest.raises(NotFound, match="sign sigstore"):
        why_not(folder, ada)
    roots = tmp_path / "roots.json"
    store = next(iter((Path(sigstore.__file__).parent / "_store").glob("*sigstore.dev")))
    parts = {name: json.loads((store / file).read_text()) for name, file in ROOTS.items()}
    roots.write_text(json.dumps({"mediaType": "application/vnd.dev.sigstore.clienttrustconfig.v0.1+json", **parts}))
    for content in ((folder / SIGNATURE).read_bytes(), b"{}"):
        place(folder).write_bytes(content)
        assert why_not(folder, ada, roots).startswith("ada@example.org did not sign this model: ")
    roots.write_text("{}")
    with pytest.raises(CliError, match="roots of trust can't be read"):
        why_not(folder, ada, roots)

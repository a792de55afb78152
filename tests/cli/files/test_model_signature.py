"""model.sig as specified: OpenSSF's own package signs, and agrees about every changed folder."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from model_signing import hashing, signing, verifying

from cli.errors import CliError
from cli.files.model_signature import SIGNATURE, key_digest, read
from cli.files.signed_model import verify

Change = Callable[[Path], object]
CURVES: dict[str, ec.EllipticCurve] = {"P-256": ec.SECP256R1(), "P-384": ec.SECP384R1(), "P-521": ec.SECP521R1()}
FILES = {"weights.safetensors": b"w" * 3000, "nested/deep/model.json": b"{}", "empty": b"", "README.md": b"# m\n"}
HINT = ("verificationMaterial", "publicKey")


def _config() -> hashing.Config:
    return hashing.Config()  # type: ignore[no-untyped-call]  # it has no types


class Signed:
    """A folder that OpenSSF's package signed with a new key."""

    def __init__(self, home: Path, curve: str = "P-256", config: hashing.Config | None = None) -> None:
        self.folder, self.public = home / "m", home / "key.pub"
        for name, content in FILES.items():
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_bytes(content)
        key = ec.generate_private_key(CURVES[curve])
        (home / "key").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        self.public.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
        self.config = config
        self.sign(home / "key", config or _config())

    def sign(self, key: Path, config: hashing.Config) -> None:
        config.set_ignored_paths(paths=[self.folder / SIGNATURE, "cache"])
        signer = signing.Config()  # type: ignore[no-untyped-call]
        signer.use_elliptic_key_signer(private_key=key).set_hashing_config(config)
        signer.sign(self.folder, self.folder / SIGNATURE)

    def ours(self) -> list[str]:
        """Our problems, as file and sentence."""
        public = self.public.read_bytes()
        return [f"{each.file} {each.what}" for each in verify(self.folder, {key_digest(public): public}).problems]

    def theirs(self) -> str:
        """The complaint of OpenSSF's package about the folder; '' for none."""
        try:
            config = verifying.Config()  # type: ignore[no-untyped-call]
            config.use_elliptic_key_verifier(public_key=self.public)
            if self.config:  # the package can't verify its own shards: their size is a float in the statement
                config.set_hashing_config(self.config)
            config.verify(self.folder, self.folder / SIGNATURE)
        except (ValueError, KeyError, InvalidSignature) as exc:
            return f"{type(exc).__name__} {exc}"
        return ""

    def rewritten(self, change: Callable[[dict[str, Any]], object]) -> None:
        bundle = json.loads((self.folder / SIGNATURE).read_text())
        change(bundle)
        (self.folder / SIGNATURE).write_text(json.dumps(bundle))


def _link(folder: Path) -> None:
    (folder / "README.md").rename(folder.parent / "elsewhere")
    (folder / "README.md").symlink_to(folder.parent / "elsewhere")


def _write(name: str, content: bytes = b"new") -> Change:
    def write(folder: Path) -> None:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)

    return write


CHANGES: dict[str, Change] = {
    "nothing": lambda folder: None,
    "a byte": _write("weights.safetensors", b"v" + b"w" * 2999),
    "shorter": _write("weights.safetensors", b"w" * 2999),
    "longer": _write("weights.safetensors", b"w" * 3001),
    "a shard more": _write("weights.safetensors", b"w" * 4000),
    "missing": lambda folder: (folder / "README.md").unlink(),
    "added": _write("more.py"),
    "added deep": _write("nested/more.py"),
    "hidden": _write(".hidden"),
    "git": _write(".git/config"),
    "gitignore": _write(".gitignore"),
    "github": _write(".github/workflows/a.yml"),
    "gitattributes": _write(".gitattributes"),
    "git below": _write("nested/.git/config"),
    "like git": _write(".gitx"),
    "ignored": _write("cache/anything/at/all"),
    "like the ignored": _write("cached"),
    "link": _link,
    "empty folder": lambda folder: (folder / "new").mkdir(),
}


@pytest.mark.parametrize("curve", CURVES)
def test_each_curve_of_the_format_is_verified(tmp_path: Path, curve: str) -> None:
    """P-256 signs with SHA-256, P-384 with SHA-384, P-521 with SHA-512."""
    signed = Signed(tmp_path, curve)
    assert (signed.ours(), signed.theirs()) == ([], "")
    CHANGES["a byte"](signed.folder)
    assert signed.ours() == ["weights.safetensors differs from what was signed"]


@pytest.mark.parametrize("method", ["files", "shards"])
@pytest.mark.parametrize("change", CHANGES)
def test_both_programs_agree(tmp_path: Path, change: str, method: str) -> None:
    """Both programs agree on whether a changed folder matches its signature, by file or by shard."""
    shards = _config().use_shard_serialization(shard_size=1000)
    signed = Signed(tmp_path, config=shards if method == "shards" else None)
    CHANGES[change](signed.folder)
    assert bool(signed.ours()) == bool(signed.theirs()), (signed.ours(), signed.theirs())


def test_blake2_is_verified(tmp_path: Path) -> None:
    """OpenSSF's package signs with BLAKE2, but can't verify such a signature itself."""
    signed = Signed(tmp_path, config=_config().use_file_serialization(hashing_algorithm="blake2"))
    assert signed.ours() == []
    CHANGES["a byte"](signed.folder)
    assert signed.ours() == ["weights.safetensors differs from what was signed"]


def test_links_count_where_the_signer_allowed_them(tmp_path: Path) -> None:
    """The content behind a link is compared with the signed content."""
    signed = Signed(tmp_path)
    _link(signed.folder)
    assert signed.ours() == ["README.md is a link, not a file"]
    signed.sign(tmp_path / "key", _config().use_file_serialization(allow_symlinks=True).set_allow_symlinks(True))
    assert signed.ours() == []
    (tmp_path / "elsewhere").write_bytes(b"changed")
    assert signed.ours() == ["README.md differs from what was signed"]


@pytest.mark.parametrize("form", [{}, {"rawBytes": "AAAA", "keyDetails": "PKIX_ECDSA_P256_SHA_256"}])
def test_a_key_without_a_digest_is_compared_by_its_signature(tmp_path: Path, form: dict[str, str]) -> None:
    """Signatures from before 1.0 don't name a key by its SHA-256."""
    signed = Signed(tmp_path)
    signed.rewritten(lambda bundle: bundle["verificationMaterial"].update(publicKey=form))
    assert (signed.ours(), signed.theirs()) == ([], "")
    other = Signed(tmp_path / "other")
    signed.public = other.public
    assert signed.ours() == ["model.sig was altered, or signed by someone else: none of the trusted keys signed it"]
    assert signed.theirs()


BROKEN: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "no envelope": (lambda b: b.pop("dsseEnvelope"), "dsseEnvelope is missing"),
    "no signature": (lambda b: b["dsseEnvelope"].update(signatures=[]), "its list of signatures is empty"),
    "no base64": (lambda b: b["dsseEnvelope"].update(payload="%"), "payload is not base64"),
    "no JSON": (lambda b: b["dsseEnvelope"].update(payload="aGk="), "the payload is not JSON"),
    "other payload": (lambda b: b["dsseEnvelope"].update(payloadType="text/plain"), "its payloadType is 'text/plain'"),
    "other bundle": (lambda b: b.update(mediaType="v9"), "its mediaType is 'v9'"),
    "certificate": (lambda b: b.update(verificationMaterial={"x509CertificateChain": {}}), "made with a certificate"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_is_wrong_with_a_bundle_is_a_sentence(tmp_path: Path, case: str) -> None:
    """The sentence names the part of the bundle, not a Python error."""
    change, words = BROKEN[case]
    signed = Signed(tmp_path)
    signed.rewritten(change)
    with pytest.raises(CliError, match="is not a readable signature: ") as raised:
        signed.ours()
    assert words in str(raised.value)


PAYLOADS: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "two subjects": (lambda s: s["subject"].append(s["subject"][0]), "it names 2 subjects, not one"),
    "no subject": (lambda s: s.pop("subject"), "subject is missing"),
    "other type": (lambda s: s.update(_type="x"), "its statement is of type 'x'"),
    "other predicate": (lambda s: s.update(predicateType="x"), "its predicateType is 'x'"),
    "unknown method": (lambda s: s["predicate"]["serialization"].update(method="x"), "its method is 'x'"),
    "blake3": (lambda s: s["predicate"]["serialization"].update(hash_type="blake3"), "its digests are 'blake3'"),
    "root digest": (lambda s: s["subject"][0]["digest"].update(sha256="00"), "not that of the listed files"),
    "no digest": (lambda s: s["predicate"]["resources"][0].pop("digest"), "digest is missing"),
    "not hexadecimal": (lambda s: s["predicate"]["resources"][0].update(digest="zz"), "is not hexadecimal"),
}


@pytest.mark.parametrize("case", PAYLOADS)
def test_what_is_wrong_with_a_statement_is_a_sentence(tmp_path: Path, case: str) -> None:
    """The error comes before any request for a key."""
    change, words = PAYLOADS[case]
    bundle = json.loads((Signed(tmp_path).folder / SIGNATURE).read_text())
    statement = json.loads(base64.b64decode(bundle["dsseEnvelope"]["payload"]))
    change(statement)
    bundle["dsseEnvelope"]["payload"] = base64.b64encode(json.dumps(statement).encode()).decode()
    with pytest.raises(CliError, match=words):
        read(json.dumps(bundle).encode())

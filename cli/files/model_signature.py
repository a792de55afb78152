"""The signature of a model in OpenSSF Model Signing 1.0: parse a model.sig, and check its signature with a public key.

A model.sig is a Sigstore bundle around a DSSE envelope around an in-toto statement. The statement lists each file of
the model with a digest. Format: https://github.com/sigstore/model-transparency/blob/main/docs/model_signing_format.md.
Statements of its releases before 1.0 (predicate Digests/v0.1) are read too.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import CliError, extra

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey

SIGNATURE = "model.sig"
PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "https://model_signing/signature/v1.0"
PREDICATE_BEFORE_1_0 = "https://model_signing/Digests/v0.1"
BUNDLE_TYPE = "application/vnd.dev.sigstore.bundle.v0.3+json"
HASHES = ("sha256", "blake2b")  # blake3, the format's third function, is not in Python's standard library
CURVES = {"secp256r1": "P-256", "secp384r1": "P-384", "secp521r1": "P-521"}


@dataclass(frozen=True)
class Rules:
    """How the signer read the folder. `shard_bytes` is 0 if each file has one digest."""

    hash_type: str = "sha256"
    shard_bytes: int = 0
    allow_symlinks: bool = False
    ignored: tuple[str, ...] = ()  # paths in the folder, each with everything below it


@dataclass(frozen=True)
class Signed:
    """The content of a signature: the model's name, the digest of each file, and the SHA-256 of the signer's key.

    With shards, the keys of `files` are NAME:START:END. `signer` is '' if the signature does not name its key.
    """

    name: str
    files: dict[str, str]
    signer: str
    payload: bytes
    signature: bytes
    rules: Rules = Rules()


def read(content: bytes) -> Signed:
    """Parse a model.sig without checking its signature. Raises CliError for content that is not such a signature."""
    bundle = _json(content, "The file")
    if _text(bundle, "mediaType") != BUNDLE_TYPE:
        raise _unreadable(f"its mediaType is {str(bundle['mediaType'])[:80]!r}, not {BUNDLE_TYPE!r}")
    material = _part(bundle, dict, "verificationMaterial")
    if "publicKey" not in material:
        raise _unreadable(
            "it was made with a certificate, not with a key; check it with `model_signing verify certificate` or "
            "`model_signing verify sigstore`"
        )
    envelope = _part(bundle, dict, "dsseEnvelope")
    if (kind := _text(envelope, "payloadType")) != PAYLOAD_TYPE:
        raise _unreadable(f"its payloadType is {kind[:80]!r}, not {PAYLOAD_TYPE!r}")
    signatures = _part(envelope, list, "signatures")
    if not signatures:
        raise _unreadable("its list of signatures is empty")
    payload = _base64(envelope, "payload")
    name, files, rules = _statement(_json(payload, "The payload"))
    signer = str(_part(material, dict, "publicKey").get("hint") or "")
    return Signed(name, files, signer, payload, _base64(signatures[0], "sig"), rules)


def why_not_signed(signed: Signed, keys: Mapping[str, bytes]) -> str:
    """Return the reason why the signature is by none of these keys (PEM by SHA-256), or '' if it is.

    A signature that names no key is compared with each of them. Raises CliError for a key that is not on one of the
    curves P-256, P-384 and P-521.
    """
    if not signed.signer:
        whys = [_why_altered(signed, pem) for pem in keys.values()]
        return "" if not all(whys) else "was altered, or signed by someone else: none of the trusted keys signed it"
    if signed.signer not in keys:
        known = ", ".join(digest[:16] for digest in keys) or "no key"
        return f"was signed by someone else: key {signed.signer[:16]}, not {known}"
    return _why_altered(signed, keys[signed.signer])


def _why_altered(signed: Signed, public_key: bytes) -> str:
    key = _key(public_key)
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric.ec import ECDSA

    by_curve = {"secp256r1": hashes.SHA256(), "secp384r1": hashes.SHA384(), "secp521r1": hashes.SHA512()}
    for encoded in (_encoded(signed.payload), _encoded_before_1_0(signed.payload)):
        try:
            key.verify(signed.signature, encoded, ECDSA(by_curve[key.curve.name]))
            return ""
        except InvalidSignature:
            continue
    return f"was altered: key {_digest_of(key)[:16]} did not sign this content"


def key_digest(public_key: bytes) -> str:
    """Return the name of a key in signatures: the SHA-256 of its PEM, however the PEM is wrapped.

    Raises CliError for a key that can't be read.
    """
    return _digest_of(_key(public_key))


def _digest_of(key: EllipticCurvePublicKey) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return hashlib.sha256(key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)).hexdigest()


def _key(public_key: bytes) -> EllipticCurvePublicKey:
    try:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
        from cryptography.hazmat.primitives.serialization import load_pem_public_key
    except ImportError as exc:
        raise CliError(f"verify needs the package cryptography: {extra('verify')}.") from exc
    try:
        key = load_pem_public_key(public_key)
    except (ValueError, UnsupportedAlgorithm) as exc:
        raise CliError(f"The public key can't be read: {exc}.", "bad_data") from exc
    if not isinstance(key, EllipticCurvePublicKey) or key.curve.name not in CURVES:
        raise CliError(f"The public key uses none of the curves {', '.join(CURVES.values())}.", "bad_data")
    return key


def _encoded(payload: bytes) -> bytes:
    """Return DSSE's encoding before signing, https://github.com/secure-systems-lab/dsse/blob/v1.0.0/protocol.md."""
    return b"DSSEv1 %d %s %d %s" % (len(PAYLOAD_TYPE), PAYLOAD_TYPE.encode(), len(payload), payload)


def _encoded_before_1_0(payload: bytes) -> bytes:
    """Return the bytes that model-signing signed before 1.0: the payload as Python prints it (`pae_compat` of 1.0
    reads it).
    """
    return f"DSSEV1 {len(PAYLOAD_TYPE)} {PAYLOAD_TYPE} {len(payload)} {payload!r}".encode()


def _statement(statement: dict[str, Any]) -> tuple[str, dict[str, str], Rules]:
    """Return the model's name, the digest of each file, and the rules by which the folder is read."""
    if (kind := _text(statement, "_type")) != STATEMENT:
        raise _unreadable(f"its statement is of type {kind[:80]!r}, not {STATEMENT!r}")
    subjects = _part(statement, list, "subject")
    predicate = _text(statement, "predicateType")
    if predicate == PREDICATE_BEFORE_1_0:
        files = {_text(each, "name"): _text(each, "digest", "sha256") for each in subjects}
        return "a model that the signature does not name", files, Rules()
    if predicate != PREDICATE:
        raise _unreadable(f"its predicateType is {predicate[:80]!r}, not {PREDICATE!r}")
    if len(subjects) != 1:
        raise _unreadable(f"it names {len(subjects)} subjects, not one")
    rules = _rules(_part(statement, dict, "predicate", "serialization"))
    rows = [_resource(each, rules) for each in _part(statement, list, "predicate", "resources")]
    if hashlib.sha256(b"".join(map(bytes.fromhex, dict(rows).values()))).hexdigest() != _text(
        subjects[0], "digest", "sha256"
    ):
        raise _unreadable("the digest of the model is not that of the listed files")
    return _text(subjects[0], "name"), dict(rows), rules


def _rules(serialization: dict[str, Any]) -> Rules:
    method, hash_type = _text(serialization, "method"), _text(serialization, "hash_type")
    if method not in ("files", "shards"):
        raise _unreadable(f"its method is {method[:80]!r}; files and shards can be checked")
    if hash_type not in HASHES:
        raise _unreadable(f"its digests are {hash_type[:80]!r}; {' and '.join(HASHES)} can be checked")
    shard = int(_part(serialization, float, "shard_size")) if method == "shards" else 0
    if shard < 0 or (method == "shards" and not shard):
        raise _unreadable(f"its shard_size is {shard}; it must be at least 1")
    ignored = serialization.get("ignore_paths", [])
    if not isinstance(ignored, list):
        raise _unreadable("its ignore_paths is not a list")
    return Rules(hash_type, shard, str(serialization.get("allow_symlinks")).lower() == "true", tuple(map(str, ignored)))


def _resource(resource: Any, rules: Rules) -> tuple[str, str]:
    name, kind, digest = (_text(resource, part) for part in ("name", "algorithm", "digest"))
    expected = f"{rules.hash_type}-sharded-{rules.shard_bytes}" if rules.shard_bytes else rules.hash_type
    if kind != expected:
        raise _unreadable(f"{name[:200]} has a digest of kind {kind[:80]!r}, not {expected!r}")
    try:
        return name, bytes.fromhex(digest).hex()
    except ValueError as exc:
        raise _unreadable(f"the digest of {name[:200]} is not hexadecimal") from exc


def _json(content: bytes, what: str) -> dict[str, Any]:
    try:
        value = json.loads(content)
    except (ValueError, RecursionError) as exc:
        raise _unreadable(f"{what[0].lower()}{what[1:]} is not JSON") from exc
    if not isinstance(value, dict):
        raise _unreadable(f"{what[0].lower()}{what[1:]} is not a JSON object")
    return value


def _part(value: Any, kind: type, *path: str) -> Any:
    """Return the value at this path of a JSON document. Raises CliError if the path has no value of this kind."""
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    if isinstance(value, int) and kind is float:
        value = float(value)
    if not isinstance(value, kind):
        words = {dict: "object", list: "list", str: "text", float: "number"}
        raise _unreadable(f"{'.'.join(path)} is missing, or is not of kind {words[kind]}")
    return value


def _text(value: Any, *path: str) -> str:
    return str(_part(value, str, *path))


def _base64(value: Any, name: str) -> bytes:
    try:
        return base64.b64decode(_text(value, name), validate=True)
    except ValueError as exc:
        raise _unreadable(f"{name} is not base64") from exc


def _unreadable(why: str) -> CliError:
    return CliError(f"{SIGNATURE} is not a readable signature: {why}.", "bad_data")

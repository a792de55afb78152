"""Offline check of a folder against the signature in its model.sig (OpenSSF Model Signing 1.0).

The signature has the SHA-256 of each file. Files are hashed in parallel, as fast as the disk or the cores allow.
"""

from __future__ import annotations

import base64
import hashlib
import json
import mmap
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import CliError, NotFound, extra

SIGNATURE = "model.sig"
PAYLOAD_TYPE = "application/vnd.in-toto+json"
PREDICATE = "https://model_signing/signature/v1.0"
BUNDLE_TYPE = "application/vnd.dev.sigstore.bundle.v0.3+json"
LARGEST = 256 << 20  # of model.sig: 150 bytes a file


@dataclass(frozen=True)
class Signed:
    """The content of a signature: the model's name, the SHA-256 of each file, and the digest of the signer's key."""

    name: str
    files: dict[str, str]
    signer: str
    payload: bytes
    signature: bytes


@dataclass(frozen=True)
class Problem:
    """A file that does not match the signature, or the signature itself, and the fault."""

    file: str
    what: str


@dataclass(frozen=True)
class Verified:
    """The result of a check. Without problems, every file is as the key's owner signed it."""

    signed: Signed
    problems: list[Problem]
    bytes: int
    seconds: float


def read(content: bytes) -> Signed:
    """Parse a model.sig without checking the signature. Raises CliError for content other than a signature."""
    try:
        bundle = json.loads(content)
        envelope = bundle["dsseEnvelope"]
        payload = base64.b64decode(envelope["payload"], validate=True)
        statement = json.loads(payload)
        (subject,) = statement["subject"]
        kinds = bundle["mediaType"], envelope["payloadType"], statement["predicateType"]
        files = {str(each["name"]): _sha256(each) for each in statement["predicate"]["resources"]}
        key = bundle["verificationMaterial"]["publicKey"]["hint"]
        signature = base64.b64decode(envelope["signatures"][0]["sig"], validate=True)
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as exc:
        raise CliError(f"{SIGNATURE} is not a readable signature: {type(exc).__name__} {exc}.", "bad_data") from exc
    if kinds != (BUNDLE_TYPE, PAYLOAD_TYPE, PREDICATE):
        raise CliError(f"{SIGNATURE} is a signature of an unsupported kind: {', '.join(map(str, kinds))}.", "bad_data")
    return Signed(str(subject["name"]), files, str(key), payload, signature)


def verify(folder: Path, public_key: bytes) -> Verified:
    """Check the signature, and every file of the folder against it. Raises NotFound if the folder has no model.sig."""
    began = time.perf_counter()
    file = folder / SIGNATURE
    if not file.is_file():
        raise NotFound(
            f"There is no {SIGNATURE} in {folder}. `fetch MODEL@ALIAS` downloads a model with its signature."
        )
    if file.stat().st_size > LARGEST:
        raise CliError(f"{file} is too large for a signature.", "bad_data")
    signed = read(file.read_bytes())
    if why := _why_not_signed(signed, public_key):
        return Verified(signed, [Problem(SIGNATURE, why)], 0, time.perf_counter() - began)
    there = {path.relative_to(folder).as_posix(): path for path in _files(folder)}
    problems = [Problem(name, "is missing") for name in sorted(signed.files.keys() - there.keys())]
    problems += [Problem(name, "was added after signing") for name in sorted(there.keys() - signed.files.keys())]
    names = sorted(signed.files.keys() & there.keys(), key=lambda name: -there[name].lstat().st_size)
    with ThreadPoolExecutor(_cores()) as threads:
        digests = dict(zip(names, threads.map(lambda name: _digest(there[name]), names), strict=True))
    problems += [
        Problem(name, "differs from what was signed" if digests[name] else "is a link, not a file")
        for name in sorted(names)
        if digests[name] != signed.files[name]
    ]
    size = sum(there[name].lstat().st_size for name in names)
    return Verified(signed, problems, size, time.perf_counter() - began)


def key_digest(public_key: bytes) -> str:
    """Return the name of a key in signatures: the SHA-256 of its PEM."""
    return hashlib.sha256(public_key).hexdigest()


def _why_not_signed(signed: Signed, public_key: bytes) -> str:
    """Return the reason why the signature is not by this key, or '' if it is. Raises CliError for a key that is not
    on the curve P-256."""
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, EllipticCurvePublicKey
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_public_key
    except ImportError as exc:
        raise CliError(f"verify needs the package cryptography: {extra('verify')}.") from exc
    try:
        key = load_pem_public_key(public_key)
    except ValueError as exc:
        raise CliError(f"The public key can't be read: {exc}.", "bad_data") from exc
    if not isinstance(key, EllipticCurvePublicKey) or key.curve.name != "secp256r1":
        raise CliError("The public key does not use the curve P-256.", "bad_data")
    known = key_digest(key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    if signed.signer != known:
        return f"was signed by someone else: key {signed.signer[:16]}, not {known[:16]}"
    encoded = b"DSSEv1 %d %s %d %s" % (len(PAYLOAD_TYPE), PAYLOAD_TYPE.encode(), len(signed.payload), signed.payload)
    try:
        key.verify(signed.signature, encoded, ECDSA(hashes.SHA256()))
    except InvalidSignature:
        return f"was altered: key {known[:16]} did not sign this content"
    return ""


def _sha256(resource: dict[str, Any]) -> str:
    if resource["algorithm"] != "sha256":
        raise ValueError(f"{resource['name']} has a digest of kind {resource['algorithm']}")
    return str(resource["digest"])


def _files(folder: Path) -> Iterator[Path]:
    """Yield every file and link in the folder, at any depth, except the signature."""
    for path in folder.rglob("*"):
        if (path.is_symlink() or not path.is_dir()) and path != folder / SIGNATURE:
            yield path


def _digest(path: Path) -> str:
    """Return the SHA-256 of a file; '' for a link or anything else that is not a regular file."""
    if path.is_symlink() or not path.is_file():
        return ""
    if not path.stat().st_size:
        return hashlib.sha256().hexdigest()  # nothing can't be mapped
    with path.open("rb") as content, mmap.mmap(content.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        return hashlib.sha256(mapped).hexdigest()  # without a copy: a fifth faster than reading


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

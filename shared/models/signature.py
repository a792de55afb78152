"""One signature over the files of a model, in the format of OpenSSF Model Signing 1.0. Pure except for the signer's
call.

The signature is a Sigstore bundle around a DSSE envelope around an in-toto statement, whose predicate lists each file
with its SHA-256. `model_signing verify key` reads it, which a test proves. The model_signing package itself signs
folders on disk with keys on disk, and needs twenty other packages; here the files are in a storage account and the key
may be in Key Vault.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

from shared.models.ports import Signer

SIGNATURE = "model.sig"
PAYLOAD_TYPE = "application/vnd.in-toto+json"
BUNDLE_TYPE = "application/vnd.dev.sigstore.bundle.v0.3+json"
STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "https://model_signing/signature/v1.0"


def root_digest(files: Mapping[str, str]) -> str:
    """Return the SHA-256 over the digests of all files, in the order of their names."""
    digest = hashlib.sha256()
    for name in sorted(files):
        digest.update(bytes.fromhex(files[name]))
    return digest.hexdigest()


def statement(name: str, files: Mapping[str, str]) -> dict[str, Any]:
    """Return the signed statement: the model's name, and the SHA-256 of each file by name."""
    resources = [{"name": file, "algorithm": "sha256", "digest": files[file]} for file in sorted(files)]
    how = {"method": "files", "hash_type": "sha256", "allow_symlinks": False, "ignore_paths": [SIGNATURE]}
    return {
        "_type": STATEMENT,
        "subject": [{"name": name, "digest": {"sha256": root_digest(files)}}],
        "predicateType": PREDICATE,
        "predicate": {"serialization": how, "resources": resources},
    }


def signed(name: str, files: Mapping[str, str], signer: Signer) -> bytes:
    """Return the content of model.sig."""
    return bundled(json.dumps(statement(name, files), indent=1).encode(), signer)


def bundled(payload: bytes, signer: Signer) -> bytes:
    """Return a Sigstore bundle around a signed DSSE envelope with this in-toto statement."""
    bundle = {
        "mediaType": BUNDLE_TYPE,
        "verificationMaterial": {"publicKey": {"hint": key_digest(signer.public_key())}, "tlogEntries": []},
        "dsseEnvelope": {
            "payload": base64.b64encode(payload).decode(),
            "payloadType": PAYLOAD_TYPE,
            "signatures": [{"sig": base64.b64encode(signer.sign(what_is_signed(payload))).decode(), "keyid": ""}],
        },
    }
    return json.dumps(bundle, indent=1).encode()


def what_is_signed(payload: bytes) -> bytes:
    """Return DSSE's pre-authentication encoding, https://github.com/secure-systems-lab/dsse/blob/v1.0.0/protocol.md."""
    return b"DSSEv1 %d %s %d %s" % (len(PAYLOAD_TYPE), PAYLOAD_TYPE.encode(), len(payload), payload)


def key_digest(public_key: bytes) -> str:
    """Return the name of a key: the SHA-256 of its PEM."""
    return hashlib.sha256(public_key).hexdigest()


def payload_of(bundle: Mapping[str, Any], public_key: Callable[[str], bytes] | bytes) -> tuple[str, bytes]:
    """Return the signer's hint and the payload of a bundle. `public_key` is the PEM, or finds the PEM for a hint.

    Raises ValueError, with a sentence, for a payload that this key did not sign, and KeyError for another format.
    """
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, EllipticCurvePublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    envelope = bundle["dsseEnvelope"]
    hint = str(bundle.get("verificationMaterial", {}).get("publicKey", {}).get("hint") or "")
    payload = base64.b64decode(envelope["payload"], validate=True)
    key = load_pem_public_key(public_key if isinstance(public_key, bytes) else public_key(hint))
    by_size = {256: hashes.SHA256(), 384: hashes.SHA384(), 521: hashes.SHA512()}
    if not isinstance(key, EllipticCurvePublicKey) or key.key_size not in by_size:
        raise ValueError("The public key uses none of the curves P-256, P-384 and P-521.")
    if envelope["payloadType"] != PAYLOAD_TYPE:
        raise ValueError(f"Its payloadType is not {PAYLOAD_TYPE}.")
    signature = base64.b64decode(envelope["signatures"][0]["sig"], validate=True)
    try:
        key.verify(signature, what_is_signed(payload), ECDSA(by_size[key.key_size]))
    except InvalidSignature as exc:
        raise ValueError("The key did not sign this content.") from exc
    return hint, payload


def read_signature(content: bytes) -> tuple[dict[str, str], str]:
    """Return the SHA-256 of each signed file, and the digest of the key. Raises ValueError or KeyError."""
    bundle = json.loads(content)
    payload = json.loads(base64.b64decode(bundle["dsseEnvelope"]["payload"]))
    files = {str(each["name"]): str(each["digest"]) for each in payload["predicate"]["resources"]}
    return files, str(bundle["verificationMaterial"]["publicKey"]["hint"])

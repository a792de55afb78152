"""The local cloud's key for signing models, created and stored in the cloud's folder."""

from __future__ import annotations

from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from emulators.private import write_private

NAME = "model-signing.pem"


def own_key(home: Path) -> Path:
    """Return the file of the key, which no other user can read. The file is created once, whole."""
    file = home / NAME
    if not file.exists():
        pem = generate_private_key(SECP256R1()).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        write_private(file, pem.decode("ascii"))
    return file

"""The local cloud's key that signs models: made with the cloud's folder, and kept with it."""

from __future__ import annotations

from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from emulators.private import write_private

NAME = "model-signing.pem"


def own_key(home: Path) -> Path:
    """The file of the key, closed to others. It is made whole, once."""
    file = home / NAME
    if not file.exists():
        pem = generate_private_key(SECP256R1()).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        write_private(file, pem.decode("ascii"))
    return file

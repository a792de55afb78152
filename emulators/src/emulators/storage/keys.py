"""The name and the keys of an emulated storage account."""

from __future__ import annotations

import base64
import secrets
from pathlib import Path

from emulators.private import write_private

ACCOUNT = "devstoreaccount1"
# Published by Microsoft for every Azurite, so it protects nothing. Only for clients that know no other key.
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


def own_key(home: Path) -> str:
    """Return the account's key in this home, which is generated on first use."""
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = home / "account.key"
    if not path.exists():
        write_private(path, base64.b64encode(secrets.token_bytes(64)).decode())
    return path.read_text()

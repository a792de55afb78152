"""The public keys that this user trusts for each deployment's models: fetched once, then kept.

Who later sends another key, or signs with one, is found: `verify` goes by the key that was kept.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import urlsplit

from ..api.client import Api
from ..errors import unreadable
from .profiles import config_folder

FOLDER = "signing-keys"


def trusted(url: str, api: Api) -> bytes:
    """The deployment's key as it was first seen."""
    file = place(url)
    if not file.is_file():
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        file.write_text(str(api.get("model-key")["pem"]), "ascii")
    return file.read_bytes()


def place(url: str) -> Path:
    """Where the key of the deployment at this address is kept."""
    parts = urlsplit(url)
    name = re.sub(r"[^a-z0-9.-]+", "_", (parts.hostname or "").lower())
    return config_folder(os.environ) / FOLDER / f"{'local' if name in ('127.0.0.1', 'localhost') else name}.pem"


def read(file: Path) -> bytes:
    """A key from a file that the user names."""
    try:
        return file.read_bytes()
    except OSError as exc:
        raise unreadable(file, exc) from exc

"""The user's trusted public keys for each deployment's models: downloaded at the first use, then kept.

`verify` uses the stored key, so a deployment that later serves another key, or signs with one, is detected.
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
    """Return the deployment's key from the first use."""
    file = place(url)
    if not file.is_file():
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        file.write_text(str(api.get("model-key")["pem"]), "ascii")
    return file.read_bytes()


def place(url: str) -> Path:
    """Return the path of the stored key of the deployment at this URL."""
    parts = urlsplit(url)
    name = re.sub(r"[^a-z0-9.-]+", "_", (parts.hostname or "").lower())
    return config_folder(os.environ) / FOLDER / f"{'local' if name in ('127.0.0.1', 'localhost') else name}.pem"


def read(file: Path) -> bytes:
    """Read a key from a file that the user names. Raises CliError if the file can't be read."""
    try:
        return file.read_bytes()
    except OSError as exc:
        raise unreadable(file, exc) from exc

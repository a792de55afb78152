"""The public keys that this user trusts for each deployment's models.

The first command that needs them downloads the deployment's keys and trusts them. Later keys are trusted only after
`keys --trust`, so a deployment that serves another key, or signs with one, is noticed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ..api.client import Api
from ..errors import NotFound, Unreachable, unreadable
from ..files.model_signature import key_digest
from ..session import Session
from .profiles import config_folder

FOLDER = "signing-keys"
_PEM = re.compile(rb"-----BEGIN PUBLIC KEY-----.+?-----END PUBLIC KEY-----\n?", re.DOTALL)


def trusted(session: Session) -> dict[str, bytes]:
    """Return the trusted keys of the deployment, each as PEM by its SHA-256. Downloads them at the first use."""
    file = place(session.profile.url)
    if not file.is_file():
        first = [key for key in served(session.api).values() if not key["withdrawn_at"]]
        write(file, [str(key["pem"]).encode() for key in first])
        session.remark(
            f"This computer now trusts {_named(first)} of {session.profile.url}, seen for the first time. Compare the "
            "SHA-256 that `keys` prints with one that you got in another way.",
            "yellow",
        )
    return of_file(file)


def of_file(file: Path) -> dict[str, bytes]:
    """Return the keys in a PEM file by their SHA-256. Raises CliError if the file can't be read or has no key."""
    try:
        content = file.read_bytes()
    except OSError as exc:
        raise unreadable(file, exc) from exc
    return {key_digest(pem): pem for pem in _PEM.findall(content) or [content]}


def served(api: Api) -> dict[str, dict[str, Any]]:
    """Return the keys that the deployment lists, by their SHA-256. Raises Unreachable if it does not answer."""
    answer = api.get("model-key")
    alone = {"sha256": key_digest(answer["pem"].encode()), "pem": answer["pem"], "since": "", "until": ""}
    keys = answer.get("keys") or [alone | {"withdrawn_at": "", "why": ""}]  # a deployment of an earlier release
    return {str(key["sha256"]): key for key in keys}


def why_withdrawn(session: Session, sha256: str) -> str:
    """Return the reason why the deployment no longer accepts signatures of this key, or '' if it does."""
    try:
        key = served(session.api).get(sha256)
    except (Unreachable, NotFound):
        session.remark("The API did not answer, so whether the key was withdrawn was not checked.", "yellow")
        return ""
    if key is None or not key["withdrawn_at"]:
        return ""
    because = f": {key['why']}" if key["why"] else ""
    return f"is by key {sha256[:16]}, which was withdrawn at {key['withdrawn_at']}{because}"


def trust(session: Session, sha256: str) -> None:
    """Trust this key of the deployment from now on. Raises NotFound for a key that the deployment does not list."""
    keys = served(session.api)
    if sha256 not in keys:
        raise NotFound(f"{session.profile.url} has no key {sha256[:80]}. It has: {', '.join(keys)}.")
    known = trusted(session) | {sha256: str(keys[sha256]["pem"]).encode()}
    write(place(session.profile.url), list(known.values()))


def forget(session: Session, sha256: str) -> None:
    """Stop trusting this key. Raises NotFound for a key that is not trusted."""
    known = trusted(session)
    if sha256 not in known:
        raise NotFound(f"This computer does not trust key {sha256[:80]}. It trusts: {', '.join(known) or 'none'}.")
    write(place(session.profile.url), [pem for digest, pem in known.items() if digest != sha256])


def place(url: str) -> Path:
    """Return the path of the stored keys of the deployment at this URL."""
    parts = urlsplit(url)
    name = re.sub(r"[^a-z0-9.-]+", "_", (parts.hostname or "").lower())
    return config_folder(os.environ) / FOLDER / f"{'local' if name in ('127.0.0.1', 'localhost') else name}.pem"


def write(file: Path, keys: Iterable[bytes]) -> None:
    """Write these keys into one PEM file, which then has all or none of them."""
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    unfinished = file.with_name(f".{file.name}.{os.getpid()}.part")
    unfinished.write_bytes(b"".join(pem if pem.endswith(b"\n") else pem + b"\n" for pem in keys))
    unfinished.replace(file)


def _named(keys: list[dict[str, Any]]) -> str:
    words = "key" if len(keys) == 1 else "keys"
    return f"the {words} {', '.join(str(key['sha256']) for key in keys)}" if keys else "no key"

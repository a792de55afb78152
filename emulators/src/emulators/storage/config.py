"""The configuration of the storage services: one JSON file, read once, checked and frozen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from emulators.storage.common.identities import Identities
from emulators.storage.keys import ACCOUNT, KEY, own_key


@dataclass(frozen=True)
class Config:
    """`state` holds the data; port 0 is that of the last start if it is free. The account is called as Azurite's.

    Without a `key` there is one of the state's own, drawn at random and kept in `account.key`; with `published_key` it
    is the one that Microsoft published for every Azurite, which protects nothing.

    With `certs`, a folder, tables are served over HTTPS too, where the SDKs send tokens; `identities` says whose.
    `access_log` gets a line for each request: method, path and status, never a signature. `blob_log` gets one for each
    blob that was made, from which Event Grid makes its events.

    `oauth` is `basic` to admit tokens whose signature nobody checks, as Azurite does (common/unsigned.py).

    With `web_sources`, copies may have sources outside of the account: whoever may write then makes this process read
    any address that it reaches.

    With `versioning`, what a blob was before each change stays as a version.

    With `public_access`, a container can be opened to everyone; otherwise that is refused, as new accounts do.
    """

    state: Path
    host: str = "127.0.0.1"
    blob_port: int = 0
    queue_port: int = 0
    table_port: int = 0
    account: str = ACCOUNT
    key: str = field(default="", repr=False)
    published_key: bool = False
    access_log: Path | None = None
    blob_log: Path | None = None
    certs: Path | None = None
    identities: Identities | None = None
    public_access: bool = False
    oauth: str = ""
    versioning: bool = False
    web_sources: bool = False


def parse(source: Mapping[str, Any]) -> Config:
    """Make a Config from the JSON document. Raises ValueError naming the key that is unknown or missing."""
    if unknown := source.keys() - {f.name for f in fields(Config)}:
        raise ValueError(f"unknown configuration keys: {sorted(unknown)}; known: {[f.name for f in fields(Config)]}")
    if "state" not in source:
        raise ValueError("the configuration lacks 'state', the folder of the data")
    if source.get("oauth", "") not in ("", "basic"):
        raise ValueError(f"oauth is {source['oauth']!r}; it may be 'basic'")
    if source.get("oauth") and source.get("identities"):
        raise ValueError("oauth admits every token, identities those of some; the configuration may have one of them")
    paths = {name: Path(source[name]) for name in ("state", "access_log", "blob_log", "certs") if source.get(name)}
    identities = Identities.of(source["identities"]) if source.get("identities") else None
    key = source.get("key") or (KEY if source.get("published_key") else own_key(paths["state"]))
    return Config(**{**source, **paths, "key": key, "identities": identities})

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
    """`state` has the data. Port 0 means the port of the last start, if it is free. The account has the name of
    Azurite's.

    Without a `key` the state has its own random key, stored in `account.key`. With `published_key` the key is the one
    that Microsoft published for every Azurite, which protects nothing.

    With `certs`, a folder, tables are served over HTTPS too, where the SDKs send tokens. `identities` are the holders
    of valid tokens. `access_log` gets a line for each request: method, path and status, never a signature. `blob_log`
    gets a line for each created, deleted or moved blob, from which Event Grid creates its events.

    `oauth` is `basic` to admit tokens whose signature is not checked, as Azurite does (common/unsigned.py).

    With `web_sources`, copies may have sources outside of the account. Anyone who may write can then make this process
    read any address that it can reach.

    With `versioning`, each change keeps the previous state of the blob as a version.

    With `public_access`, a container can be opened to everyone. Otherwise public access is refused, as in new accounts.
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
    """Make a Config from the JSON document. Raises ValueError with the name of an unknown or missing key."""
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

"""Start the storage services from another program."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from emulators import process
from emulators.private import write_private
from emulators.storage.keys import ACCOUNT, KEY, own_key


class Services:
    """The running services of one account, made by `start`. As a context manager, they stop at the end of the
    block."""

    def __init__(self, home: Path, part: process.Part, account: str, key: str) -> None:
        self.home = home
        self.part = part
        self.blob_url = str(part.info["blob_url"])
        self.queue_url = str(part.info["queue_url"])
        self.table_url = str(part.info["table_url"])
        self._account, self.key = account, key

    @property
    def connection_string(self) -> str:
        return (
            f"DefaultEndpointsProtocol=http;AccountName={self._account};AccountKey={self.key};"
            f"BlobEndpoint={self.blob_url};QueueEndpoint={self.queue_url};TableEndpoint={self.table_url};"
        )

    @property
    def pid(self) -> int:
        return self.part.process.pid

    def __enter__(self) -> Services:
        return self

    def __exit__(self, *_: object) -> None:
        self.part.stop()


def start(home: Path, **config: Any) -> Services:
    """Start the services with the data under `home`, and return when they answer. `config` is described in
    config.py.

    Raises process.PartFailed with the end of the log.
    """
    home.mkdir(parents=True, exist_ok=True)
    file = home / "storage.json"
    write_private(file, json.dumps({"state": str(home / "state"), **config}))
    argv = [sys.executable, "-m", "emulators.storage", "--config", str(file)]
    part = process.start("storage", argv, log=home / "storage.log")
    key = config.get("key") or (KEY if config.get("published_key") else own_key(home / "state"))
    return Services(home, part, config.get("account", ACCOUNT), key)

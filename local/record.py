"""cloud.json: the addresses of a running cloud, and the cloud's process.

The supervisor holds a lock for as long as it lives, and the operating system releases the lock however the supervisor
dies. So a record without a held lock is stale, and the process id in a record with a held lock is certainly the
supervisor's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from filelock import FileLock, Timeout

from cli.setup import file_trust
from emulators.private import private_folder, write_private

REPOSITORY = Path(__file__).resolve().parent.parent
HOME = REPOSITORY / ".trainyard" / "cloud"
STATE = (  # the files that a cloud keeps in its folder
    "azureml",
    "azurite",  # of an earlier version
    "certs",
    "cloud.json",
    "configs",
    "eventgrid",
    "host-port",
    "lock",
    "logs",
    "model-signing.pem",
    "storage",
)


def home_of(env: Mapping[str, str]) -> Path:
    """Return the folder of the local cloud's state, for every command."""
    return Path(env.get("TRAINYARD_CLOUD") or HOME).resolve()


@dataclass(frozen=True)
class Record:
    """A running cloud, for other processes. `certs` is the certificate bundle of the HTTPS endpoints."""

    pid: int
    api: str
    connection_string: str
    blob_url: str
    azureml: str
    eventgrid: str
    certs: str
    workspace_id: str
    started_at: str
    parts: dict[str, int] = field(default_factory=dict)

    def write(self, home: Path) -> None:
        """Write the record whole or not at all: no reader sees a half-written record."""
        write_private(home / "cloud.json", json.dumps(asdict(self), indent=2) + "\n")


def beside(home: Path) -> Path:
    """Return the folder of the demo's own cloud, which the demo uses while others work in the cloud on `home`."""
    return home.with_name(f"{home.name}-demo")


def read(home: Path) -> Record | None:
    """Return the cloud that runs on this folder, or None. A stale record counts as none.

    Raises cli.setup.file_trust.Untrusted for a record that another user could have written.
    """
    file_trust.check(home / "cloud.json")
    lock = Lock.acquire(home)
    if lock:
        lock.release()
        return None
    try:
        return Record(**json.loads((home / "cloud.json").read_text()))
    except (FileNotFoundError, ValueError, TypeError):
        return None  # a process holds the lock, and is still starting or already stopping


def has_state(home: Path) -> bool:
    """Return whether this folder ever held a cloud. Creates nothing."""
    return (home / "lock").exists()


class Lock:
    """The right to run a cloud on a folder. Held until `release` (a second call does nothing) or the end of the
    process."""

    def __init__(self, lock: FileLock) -> None:
        self._lock = lock

    @classmethod
    def acquire(cls, home: Path) -> Lock | None:
        """Take the lock, or return None while another process holds the lock."""
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = FileLock(home / "lock", mode=0o600, thread_local=False)
        try:
            lock.acquire(blocking=False)
        except Timeout:
            return None
        return cls(lock)

    def release(self) -> None:
        self._lock.release()


def make_private(home: Path) -> None:
    """Close the folder to other users, because the state holds keys and the access log holds signed addresses. Raises
    PermissionError for another user's folder.
    """
    if home.parent.name == ".trainyard":
        private_folder(home.parent)
    private_folder(home)

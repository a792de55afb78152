"""What a killed storage account forgets: acknowledged (201) blobs and rows, and the age of the oldest lost one.

    python3 trainyard.py bench storage_kill [--quick] [--side azurite|ours|both] [--trials N] [--json]

A client writes a blob and a row in turn. At a random moment the account gets SIGKILL, and is restarted on its data.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from azure.core.exceptions import ResourceNotFoundError
from azure.data.tables import TableServiceClient
from azure.storage.blob import BlobServiceClient

from benchmarks._options import options
from emulators.storage import services
from emulators.testing import azurite

LEAST_SECONDS, MOST_SECONDS = 6.0, 13.0  # seconds of writing before the kill; Azurite saves every five seconds
PAUSE_SECONDS = 0.02
Written = list[tuple[float, str]]  # the time of the acknowledgement, and the name


class Account(Protocol):
    @property
    def connection_string(self) -> str: ...

    @property
    def pid(self) -> int: ...


Start = Callable[[Path], AbstractContextManager[Account]]
SIDES: dict[str, Start] = {"azurite": azurite.start, "ours": services.start}


def trial(start: Start, home: Path, seconds: float) -> dict[str, float]:
    """Write for `seconds`, kill the account, start it again, and count the missing blobs and rows."""
    with start(home) as account:
        written = write(account, time.monotonic() + seconds)
        killed = time.monotonic()
        os.kill(account.pid, signal.SIGKILL)
    with start(home) as account:
        blobs, rows = there(account)
    found: dict[str, float] = {"written": len(written)}
    for kind, names in (("blobs", blobs), ("rows", rows)):
        lost = [at for at, name in written if name not in names]
        found |= {f"{kind} lost": len(lost), f"{kind}, oldest s": round(killed - lost[0], 1) if lost else 0.0}
    return found


def write(account: Account, until: float) -> Written:
    written: Written = []
    with (
        BlobServiceClient.from_connection_string(account.connection_string) as blobs,
        TableServiceClient.from_connection_string(account.connection_string) as tables,
    ):
        container, table = blobs.create_container("kept"), tables.create_table("kept")
        while time.monotonic() < until:
            name = f"{len(written):06}"
            container.upload_blob(name, b"x")
            table.create_entity({"PartitionKey": "p", "RowKey": name})
            written.append((time.monotonic(), name))
            time.sleep(PAUSE_SECONDS)
    return written


def there(account: Account) -> tuple[set[str], set[str]]:
    """Return the names of the existing blobs and rows; none if even the container or the table is gone."""
    blobs: set[str] = set()
    rows: set[str] = set()
    with (
        BlobServiceClient.from_connection_string(account.connection_string) as service,
        TableServiceClient.from_connection_string(account.connection_string) as tables,
    ):
        try:
            blobs = set(service.get_container_client("kept").list_blob_names())
            rows = {row["RowKey"] for row in tables.get_table_client("kept").list_entities()}
        except ResourceNotFoundError:
            pass
    return blobs, rows


def main(argv: list[str]) -> int:
    parser = options(__doc__, "one trial of each side")
    parser.add_argument("--side", choices=[*SIDES, "both"], default="both")
    parser.add_argument("--trials", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args(argv)
    if asked.quick:
        asked.trials = 1
    results: dict[str, list[dict[str, float]]] = {}
    for side in SIDES if asked.side == "both" else [asked.side]:
        made, results[side] = random.Random(asked.seed), []
        for number in range(asked.trials):
            with tempfile.TemporaryDirectory() as home:
                results[side].append(trial(SIDES[side], Path(home), made.uniform(LEAST_SECONDS, MOST_SECONDS)))
            told = ", ".join(f"{name} {value:g}" for name, value in results[side][-1].items())
            print(f"{side}, trial {number + 1}: {told}", flush=True)
    if asked.json:
        print(json.dumps(results))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

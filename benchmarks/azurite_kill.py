"""What Azurite forgets when it is killed: blobs and rows that a client had a 201 for, and the age of the oldest.

    python3 trainyard.py bench azurite_kill [--trials N] [--json]

A client writes a blob and a row in turn; at a random moment Azurite gets SIGKILL and is started again on its data.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

from azure.core.exceptions import ResourceNotFoundError
from azure.data.tables import TableServiceClient
from azure.storage.blob import BlobServiceClient

from emulators.process import wait_for
from emulators.storage import azurite

LEAST_SECONDS, MOST_SECONDS = 6.0, 13.0  # of writing before the kill; Azurite saves every five
PAUSE_SECONDS = 0.02
Written = list[tuple[float, str]]  # when it was acknowledged, and its name


def trial(account: azurite.Azurite, seconds: float) -> dict[str, float]:
    """Write for so long, kill, start again, and count what is missing."""
    written = write(account, time.monotonic() + seconds)
    killed = time.monotonic()
    os.kill(account.pid, signal.SIGKILL)
    wait_for(lambda: not account.alive(), 10, "the end of Azurite")
    account.restart_if_dead()
    blobs, rows = there(account)
    found: dict[str, float] = {"written": len(written)}
    for kind, names in (("blobs", blobs), ("rows", rows)):
        lost = [at for at, name in written if name not in names]
        found |= {f"{kind} lost": len(lost), f"{kind}, oldest s": round(killed - lost[0], 1) if lost else 0.0}
    return found


def write(account: azurite.Azurite, until: float) -> Written:
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


def there(account: azurite.Azurite) -> tuple[set[str], set[str]]:
    """The names of the blobs and rows that are there; none if even container or table is gone."""
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
    parser = argparse.ArgumentParser(prog="python3 trainyard.py bench azurite_kill", description=__doc__)
    parser.add_argument("--trials", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true", help="one more line at the end, for machines")
    options = parser.parse_args(argv)
    made, results = random.Random(options.seed), []
    for number in range(options.trials):
        with tempfile.TemporaryDirectory() as home, azurite.start(Path(home)) as account:
            results.append(trial(account, made.uniform(LEAST_SECONDS, MOST_SECONDS)))
        print(
            f"trial {number + 1}: " + ", ".join(f"{name} {value:g}" for name, value in results[-1].items()), flush=True
        )
    if options.json:
        print(json.dumps(results))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

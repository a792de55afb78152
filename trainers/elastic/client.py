"""One table of Azure Table Storage: the rows of runs, with requests retried until a deadline.

    table = connect("https://ACCOUNT.table.core.windows.net", os.environ)
    rows = table.rows("run-1", "store")
    version = rows.insert("key", b"value", time.monotonic() + 30)
    rows.replace("key", b"other", version, time.monotonic() + 30)
    table.clear("run-1", time.monotonic() + 30)

Every call takes a deadline on time.monotonic(). Until the deadline, the call retries after throttling, server errors
and lost connections; then it raises a TableError (errors.py has the tree).

A write whose answer was lost is sent again with the same condition, so it happens at most once. The row shows which of
the two attempts succeeded, because it lists the last operation of each of its writers.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import islice

from azure.core import MatchConditions

from .connection import client_of
from .errors import Conflict, Denied, Missing, TableError, TooBig, Unreachable
from .rows import STALE, Row, Rows, Version
from .sender import FIRST_PAUSE, LIFETIME, Sender
from .values import key_text

# Includes the errors, so that users of a table need only this module.
__all__ = [
    "LIFETIME",
    "STALE",
    "Conflict",
    "Denied",
    "Missing",
    "Row",
    "Rows",
    "Table",
    "TableError",
    "TooBig",
    "Unreachable",
    "Version",
    "connect",
]

# A row written within this time, by the service's clock, belongs to a live run, whatever its writer's clock was.
ALIVE = timedelta(hours=1)
# A transaction holds at most 100 rows, an answer 1,000.
BATCH = 100


def connect(endpoint: str, environ: Mapping[str, str], table: str = "rendezvous") -> Table:
    """Return the table with this name. The first request creates a missing table; this function sends no request.

    `endpoint` is one of three forms. https://ACCOUNT.table.core.windows.net (other clouds' hosts too) and
    https://127.0.0.1:PORT/devstoreaccount1 use the identity that DefaultAzureCredential finds.
    http://127.0.0.1:PORT/devstoreaccount1, for Azurite on this machine, uses the signature in AZURE_STORAGE_SAS_TOKEN
    or else the key that Microsoft publishes. An empty value or `connection-string` uses AZURE_STORAGE_CONNECTION_STRING
    in `environ`. Raises ValueError for any other value.
    """
    return Table(client_of(endpoint, environ, table))


class Table(Sender):
    """A table; created by `connect`."""

    def rows(self, run: str, kind: str) -> Rows:
        """Return the rows of one kind (a short word) of one run. A run's rows share one partition."""
        return Rows(self, key_text(run), kind)

    def clear(self, run: str, deadline: float) -> int:
        """Delete all rows of a run, and return their number, which is too low if a response was lost. A run without
        rows is fine."""
        done = 0
        while True:
            try:
                for count in self._delete(key_text(run), deadline):
                    done += count
                return done
            except (Conflict, Missing) as error:  # another process writes or deletes the same rows
                if time.monotonic() > deadline:
                    raise Unreachable(f"run {run!r} was still being written at the deadline: {error}") from error
                time.sleep(random.uniform(0, FIRST_PAUSE))  # noqa: S311 (spreads load; no secret)

    def remove_expired(self, deadline: float, now: datetime | None = None) -> int:
        """Delete the runs whose rows have all expired, and return the number of rows. Reads the whole table.

        A row expires `lifetime` after its last write, by the service's clock. A run that becomes active again meanwhile
        is kept.
        """
        next(self.query("PartitionKey eq ''", ["PartitionKey"], deadline), None)  # learns the service's time
        today = now or self.now()
        asked, written = (f"datetime'{t.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}'" for t in (today, today - ALIVE))
        expired = f"expires lt {asked} and Timestamp lt {written}"
        partitions = {row["PartitionKey"] for row in self.query(expired, ["PartitionKey"], deadline)}
        done = 0
        for partition in sorted(partitions):
            kept = f"PartitionKey eq '{partition}' and (expires ge {asked} or Timestamp ge {written})"
            alive = self.query(kept, ["PartitionKey"], deadline)
            if next(alive, None) is None:
                with suppress(Conflict, Missing):
                    for count in self._delete(partition, deadline):
                        done += count
        return done

    def _delete(self, partition: str, deadline: float) -> Iterator[int]:
        rows = self.query(f"PartitionKey eq '{partition}'", ["PartitionKey", "RowKey"], deadline)
        while batch := list(islice(rows, BATCH)):
            operations = [
                ("delete", row, {"etag": row.metadata["etag"], "match_condition": MatchConditions.IfNotModified})
                for row in batch
            ]
            self.call(lambda _ops=operations, **options: self.client.submit_transaction(_ops, **options), deadline)
            yield len(batch)

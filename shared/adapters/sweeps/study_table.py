"""A journal in Azure Table Storage: the studies of sweeps. It is also a backend for Optuna's JournalStorage.

partition   key              row
<journal>   <12 digits>      the log of this number, as JSON; a long log continues in log_2, log_3, ...

A log is inserted under the next number. So of two concurrent writers one is first, and the other's log follows or, with
`append_at`, is not written.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from shared.adapters.tables import keys, table
from shared.adapters.tables.table import Table
from shared.kernel.clock import SystemClock
from shared.kernel.compare_and_set import compare_and_set
from shared.kernel.errors import BadInput

if TYPE_CHECKING:
    from azure.data.tables import TableServiceClient

Log = dict[str, Any]
TABLE = "studies"
_AT_ONCE = 100  # rows per transaction
_CELL = 32_000  # characters per column
_CELLS = 10
_LAST = "9" * 12


class TableJournal:
    """One journal. `connect` returns the table service; pickling keeps `connect` rather than a client."""

    def __init__(self, connect: Callable[[], TableServiceClient], name: str) -> None:
        self._connect, self._name = connect, name
        self._table = Table(connect(), TABLE)
        self._end = 0  # the number of logs read so far

    def __getstate__(self) -> tuple[Callable[[], TableServiceClient], str]:
        return self._connect, self._name

    def __setstate__(self, state: tuple[Callable[[], TableServiceClient], str]) -> None:
        self.__init__(*state)  # type: ignore[misc]

    def read_logs(self, log_number_from: int) -> Iterator[Log]:
        for row in self._table.query(keys.token(self._name), _key(log_number_from), f"{_LAST}~"):
            self._end = int(row["RowKey"]) + 1
            yield json.loads("".join(str(row.get(_column(number), "")) for number in range(_CELLS)))

    def append_logs(self, logs: list[Log]) -> None:
        for begin in range(0, len(logs), _AT_ONCE):
            self._append(logs[begin : begin + _AT_ONCE])

    def _append(self, logs: list[Log]) -> None:
        def read_new() -> None:
            deque(self.read_logs(self._end), maxlen=0)  # to find the end of the journal

        compare_and_set(
            SystemClock(),
            f"Study {self._name}",
            read_new,
            lambda _: self.append_at(self._end, logs),
            first=lambda: None,
        )

    def append_at(self, number: int, logs: list[Log]) -> None:
        """Write these logs, at most 100, from this number on. Raises Changed, and writes nothing, if a number is
        taken.
        """
        rows = [self._row(at, log) for at, log in enumerate(logs, number)]
        self._table.write(*(table.create(row) for row in rows))
        self._end = number + len(rows)

    def _row(self, number: int, log: Log) -> dict[str, str]:
        text = json.dumps(log)
        if len(text) > _CELL * _CELLS:
            raise BadInput(f"A log of study {self._name} takes {len(text)} characters; {_CELL * _CELLS} is the most.")
        cells = (text[at : at + _CELL] for at in range(0, len(text), _CELL))
        row = {"PartitionKey": keys.token(self._name), "RowKey": _key(number)}
        return row | {_column(n): cell for n, cell in enumerate(cells)}


def _key(number: int) -> str:
    return f"{number:012d}"


def _column(number: int) -> str:
    return f"log_{number + 1}" if number else "log"

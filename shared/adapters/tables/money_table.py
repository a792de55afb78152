"""Accounts, closed days and refreshed prices, in Azure Table Storage.

partition    key                            row
account      <project>                      a project's account
day!<day>    <cluster>                      a cluster's charges on a closed day
day!<day>    !closed                        marks that the day is closed
price        <size>!<tier>!<region>         a refreshed price
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from shared.adapters.tables import keys, table
from shared.adapters.tables.records import Row, from_row, readable, to_row
from shared.adapters.tables.table import RowMissing, Table
from shared.kernel.errors import BadInput
from shared.kernel.versioned import Stored
from shared.money.model import Account, Day
from shared.money.prices import Price

if TYPE_CHECKING:
    from azure.data.tables import TableServiceClient

_CLOSED = "!closed"  # sorts before every cluster, because names begin with a letter or a digit


class TableBooks:
    def __init__(self, service: TableServiceClient) -> None:
        self._table = Table(service, "money")

    def account(self, project: str) -> Stored[Account] | None:
        row = self._table.get("account", keys.token(project))
        return Stored(from_row(Account, row), table.etag(row)) if row else None

    def open_account(self, account: Account) -> None:
        self._table.write(table.create(_account_row(account)))

    def write_account(self, before: Stored[Account], account: Account) -> None:
        self._table.write(table.replace(_account_row(account), before.etag))

    def day(self, day: str) -> list[Day] | None:
        rows = list(self._table.query(f"day!{day}", "!", "~~"))
        if not any(row["RowKey"] == _CLOSED for row in rows):
            return None
        return [_day(day, row) for row in rows if row["RowKey"] != _CLOSED]

    def close_day(self, day: str, clusters: list[Day]) -> None:
        where = f"day!{day}"
        mine = {keys.token(cluster.cluster) for cluster in clusters}
        for row in list(self._table.query(where, "!", "~~", columns=["RowKey"])):
            if row["RowKey"] not in mine:  # left by an earlier closing
                with suppress(RowMissing):
                    self._table.write(table.delete(where, str(row["RowKey"])))
        for cluster in clusters:
            self._table.write(
                table.put({"PartitionKey": where, "RowKey": keys.token(cluster.cluster), **_columns(cluster)})
            )
        self._table.write(table.put({"PartitionKey": where, "RowKey": _CLOSED}))

    def prices(self) -> list[Price]:
        return list(readable(Price, self._table.query("price", "!", "~~")))

    def keep_prices(self, prices: list[Price]) -> None:
        for price in prices:
            key = "!".join(map(keys.token, (price.vm_size.lower(), price.tier, price.region)))
            self._table.write(table.put({"PartitionKey": "price", "RowKey": key, **to_row(price)}))


def _day(day: str, row: Row) -> Day:
    """Return the charges of this row, or its problem: a cluster's day never silently disappears."""
    try:
        return from_row(Day, row, problem="")
    except BadInput as exc:
        return Day(str(row.get("cluster", row["RowKey"])), day, problem=str(exc))


def _columns(day: Day) -> Row:
    return to_row(day, skip=("problem",))


def _account_row(account: Account) -> dict[str, object]:
    return {"PartitionKey": "account", "RowKey": keys.token(account.project), **to_row(account)}

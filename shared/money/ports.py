"""Ports for accounts, closed days and refreshed prices, and for today's prices."""

from __future__ import annotations

from typing import Protocol

from shared.clusters.ports import ClusterPorts
from shared.kernel.versioned import Stored
from shared.money.model import Account, Day
from shared.money.policy import Policy
from shared.money.prices import Price


class Books(Protocol):
    """The ledger's storage. tests/fakes/money.py and the adapter pass the same contract suite."""

    def account(self, project: str) -> Stored[Account] | None:
        """Return the project's account, or None."""

    def open_account(self, account: Account) -> None:
        """Insert an account. Raises Changed if the project already has an account."""

    def write_account(self, before: Stored[Account], account: Account) -> None:
        """Replace the account. Raises Changed unless the row still has before.etag."""

    def day(self, day: str) -> list[Day] | None:
        """Return a closed day, one entry per cluster, with `problem` for an unreadable entry; None if the day is
        open.
        """

    def close_day(self, day: str, clusters: list[Day]) -> None:
        """Store a day's charges forever. A second call replaces the first."""

    def prices(self) -> list[Price]:
        """Return the refreshed prices of every ever refreshed size."""

    def keep_prices(self, prices: list[Price]) -> None:
        """Store these prices, over any stored prices of equal size, tier and region."""


class RetailPrices(Protocol):
    """Azure's public price list."""

    def of(self, vm_size: str, region: str) -> list[Price]:
        """Return the current prices of one size, at most one price per tier. Raises Unavailable, or BadInput for a
        malformed answer.
        """


class MoneyPorts(ClusterPorts, Protocol):
    """The ports of clusters, the books, and the budget policy."""

    @property
    def books(self) -> Books: ...
    @property
    def money(self) -> Policy: ...
    @property
    def retail(self) -> RetailPrices | None: ...

"""Where accounts, closed days and refreshed prices are kept, and who knows today's prices."""

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
        """The project's account, or None if it has none yet."""

    def open_account(self, account: Account) -> None:
        """Add an account. Raises Changed if the project has one."""

    def write_account(self, before: Stored[Account], account: Account) -> None:
        """Replace the account. Raises Changed unless it still has before.etag."""

    def day(self, day: str) -> list[Day] | None:
        """A day that was closed, one entry a cluster, with its `problem` if it can't be read; None while it is not."""

    def close_day(self, day: str, clusters: list[Day]) -> None:
        """Keep a day's charges for good. A second time replaces the first."""

    def prices(self) -> list[Price]:
        """The prices that were refreshed, of every size that ever was."""

    def keep_prices(self, prices: list[Price]) -> None:
        """Keep these prices, over those of the same size, tier and region."""


class RetailPrices(Protocol):
    """Azure's public price list."""

    def of(self, vm_size: str, region: str) -> list[Price]:
        """The prices of one size as they are now, at most one a tier. Raises Unavailable, or BadInput for nonsense."""


class MoneyPorts(ClusterPorts, Protocol):
    """Those of clusters, the books, and the policy by which they are kept."""

    @property
    def books(self) -> Books: ...
    @property
    def money(self) -> Policy: ...
    @property
    def retail(self) -> RetailPrices | None: ...

"""The books in memory."""

from __future__ import annotations

from shared.kernel.errors import Changed
from shared.kernel.versioned import Stored
from shared.money.model import Account, Day
from shared.money.prices import Price
from tests.fakes.records import Etags


class FakeBooks:
    def __init__(self) -> None:
        self.accounts: dict[str, Stored[Account]] = {}
        self.closed: dict[str, list[Day]] = {}
        self.known: dict[tuple[str, str, str], Price] = {}
        self._etags = Etags()

    def account(self, project: str) -> Stored[Account] | None:
        return self.accounts.get(project)

    def open_account(self, account: Account) -> None:
        if account.project in self.accounts:
            raise Changed(f"project {account.project} has an account already")
        self.accounts[account.project] = Stored(account, self._etags.next())

    def write_account(self, before: Stored[Account], account: Account) -> None:
        row = self.accounts.get(account.project)
        if row is None or row.etag != before.etag:
            raise Changed(f"the account of project {account.project} changed in between")
        self.accounts[account.project] = Stored(account, self._etags.next())

    def day(self, day: str) -> list[Day] | None:
        found = self.closed.get(day)
        return None if found is None else sorted(found, key=lambda each: each.cluster)

    def close_day(self, day: str, clusters: list[Day]) -> None:
        self.closed[day] = list(clusters)

    def prices(self) -> list[Price]:
        return [price for _, price in sorted(self.known.items())]

    def keep_prices(self, prices: list[Price]) -> None:
        self.known |= {(price.vm_size.lower(), price.tier, price.region): price for price in prices}

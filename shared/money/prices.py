"""Prices per node hour, by size, tier and region. Pure.

The prices in prices.csv beside this module have the lowest precedence. Prices from Azure's retail prices API override
them, and the money file's prices override both.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from shared.kernel.errors import BadInput

TIERS = ("dedicated", "low_priority")
SHIPPED = "prices.csv"  # source of the prices that ship with the app
RETAIL = "Azure's retail prices"

Json = dict[str, Any]


@dataclass(frozen=True)
class Price:
    """Dollars per node hour. `source` names the origin, `at` since when the price is valid; None if unknown.

    `asked_at` is when the price was refreshed.
    """

    vm_size: str
    tier: str
    region: str
    dollars: float
    source: str
    at: datetime | None = None
    asked_at: datetime | None = None


class Prices:
    """Prices by size, tier and region, case-insensitive. The later of two prices with the same key wins.

    `below` holds the prices to use for keys that are missing here.
    """

    def __init__(self, prices: Iterable[Price] = (), below: Prices | None = None) -> None:
        self._by_key = {_key(p.vm_size, p.tier, p.region): p for p in prices}
        self._below = below

    def find(self, vm_size: str, tier: str, region: str) -> Price | None:
        """Return the region's price, or one valid in every region, or None. An empty tier means dedicated."""
        price = self._by_key.get(_key(vm_size, tier, region)) or self._by_key.get(_key(vm_size, tier, ""))
        return price or (self._below.find(vm_size, tier, region) if self._below else None)

    def over(self, below: Prices) -> Prices:
        """Return these prices, with `below` for missing keys."""
        return Prices(self._by_key.values(), self._below.over(below) if self._below else below)

    def __len__(self) -> int:
        return len(self._by_key)


def _key(vm_size: str, tier: str, region: str) -> tuple[str, str, str]:
    return vm_size.lower(), tier or "dedicated", region.lower().replace(" ", "")


def read_csv(text: str) -> Prices:
    """Parse prices.csv: columns vm_size, region, dedicated, low_priority; # starts a comment line."""
    import csv  # not at a cold start

    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return Prices(
        Price(row["vm_size"], tier, row["region"], float(row[tier]), SHIPPED)
        for row in csv.DictReader(lines)
        for tier in TIERS
        if row[tier]
    )


def read_retail(items: Iterable[Json], vm_size: str, region: str, now: datetime) -> list[Price]:
    """Extract the Linux prices of one size from the `Items` of the retail prices API.

    An item's skuName ends with Spot for Spot machines, and with Low Priority for the tier that Spot replaced. Windows
    has a product of its own. Of several prices the one that became valid last wins. Raises BadInput for a malformed
    item. https://learn.microsoft.com/rest/api/cost-management/retail-prices/azure-retail-prices
    """
    newest_by_tier: dict[str, Price] = {}
    for item in items:
        try:
            price = _retail(item, region)
        except (KeyError, TypeError, ValueError, AttributeError) as exc:
            raise BadInput(f"The retail prices API answered with something that is not a price: {exc!r}.") from exc
        if price is None or price.at is None or price.at > now or price.vm_size.lower() != vm_size.lower():
            continue
        before = newest_by_tier.get(price.tier)
        if before is None or before.at is None or price.at >= before.at:
            newest_by_tier[price.tier] = price
    return list(newest_by_tier.values())


def _retail(item: Json, region: str) -> Price | None:
    """Return the price of an item for one hour of a Linux machine in this region; None for any other item."""
    fits = item["type"] == "Consumption" and item["unitOfMeasure"] == "1 Hour" and item["armRegionName"] == region
    if not fits or "Windows" in item["productName"] or item["currencyCode"] != "USD":
        return None
    sku = str(item["skuName"])
    if sku.endswith("Low Priority") or float(item["retailPrice"]) <= 0:
        return None
    tier = "low_priority" if sku.endswith("Spot") else "dedicated"
    began = datetime.fromisoformat(item["effectiveStartDate"])
    return Price(str(item["armSkuName"]), tier, region, float(item["retailPrice"]), RETAIL, began)

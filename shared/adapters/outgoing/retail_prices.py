"""Azure's retail prices API, which is public and needs no key. The link to the next page is followed only on the same
host.

https://learn.microsoft.com/rest/api/cost-management/retail-prices/azure-retail-prices
"""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Callable
from datetime import datetime
from typing import Any
from urllib.parse import urlencode, urlsplit

from shared.kernel.errors import BadInput, NoAnswer
from shared.kernel.parsing import read_json
from shared.money.prices import Price, read_retail

TIMEOUT_SECONDS = 10
LARGEST = 4 * 1024 * 1024  # bytes per page of at most 1,000 items
MOST_PAGES = 5  # one size in one region needs one page


class AzureRetailPrices:
    def __init__(self, url: str, clock: Callable[[], datetime]) -> None:
        self._url, self._clock = url, clock

    def of(self, vm_size: str, region: str) -> list[Price]:
        conditions = {
            "serviceName": "Virtual Machines",
            "priceType": "Consumption",
            "armRegionName": region,
            "armSkuName": vm_size,
        }
        query = " and ".join(f"{key} eq '{_quoted(value)}'" for key, value in conditions.items())
        url: str | None = f"{self._url}?{urlencode({'$filter': query})}"
        items: list[Any] = []
        for _ in range(MOST_PAGES):
            if not url:
                break
            page = self._get(url)
            items += page.get("Items") or []
            url = page.get("NextPageLink")
        return read_retail(items, vm_size, region, self._clock())

    def _get(self, url: str) -> dict[str, Any]:
        ours, target = urlsplit(self._url), urlsplit(url)
        if (target.scheme, target.hostname) != (ours.scheme, ours.hostname):
            raise BadInput("The retail prices API links to a next page on another host.")
        try:
            # The scheme comes from a setting, which allows http and https.
            with urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS) as answer:  # noqa: S310
                page = read_json(answer.read(LARGEST), "The answer of the retail prices API")
        except (urllib.error.URLError, TimeoutError, OSError) as exc:
            raise NoAnswer(f"The retail prices API at {ours.hostname} does not answer: {exc}.") from exc
        if not isinstance(page, dict):
            raise BadInput("The answer of the retail prices API is not a JSON object.")
        return page


def _quoted(text: str) -> str:
    """Return the text escaped for an OData string."""
    return text.replace("'", "''")

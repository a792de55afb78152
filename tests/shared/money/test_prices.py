"""Prices: the app's own list, the money file, and Azure's retail prices API."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from shared.adapters.outgoing.retail_prices import AzureRetailPrices
from shared.kernel.errors import BadInput, BadSetting, NoAnswer
from shared.money.money_file import load
from shared.money.prices import RETAIL, SHIPPED, Price, Prices, read_retail
from shared.money.regions import REGIONS, region_fault
from tests.shared.money.retail import Retail

NOW = datetime(2026, 11, 22, tzinfo=UTC)
SIZE, REGION = "Standard_D2s_v5", "eastus"
# The shape of an answer is that of the API's documentation (Azure Retail Prices overview, API response examples).
ANSWER = json.loads((Path(__file__).parent / "retail_prices.json").read_text("utf-8"))


def test_prices_that_come_with_the_app() -> None:
    """VM sizes are found in upper and lower case; a size outside the list has no price."""
    shipped = load(Path("nowhere")).shipped
    price = shipped.find("STANDARD_D2S_V5", "low_priority", "East US")
    assert price == Price(SIZE, "low_priority", REGION, 0.01056, SHIPPED)
    assert shipped.find(SIZE, "", REGION) == Price(SIZE, "dedicated", REGION, 0.096, SHIPPED)
    assert shipped.find(SIZE, "dedicated", "moon") is None
    assert len(shipped) > 300


def test_one_s_own_prices_go_over_the_others(tmp_path: Path) -> None:
    """A price in the money file overrides every other, in its region, or everywhere without a region."""
    file = tmp_path / "money.yaml"
    file.write_text("region: eastus\nprices:\n- {vm_size: standard_d2s_v5, dollars: 0.05}\n")
    policy = load(file)
    prices = policy.prices.over(Prices([Price(SIZE, "dedicated", "moon", 9, RETAIL)])).over(policy.shipped)
    for region in ("moon", "eastus", "sun"):
        own = prices.find(SIZE, "dedicated", region)
        assert own is not None
        assert own.dollars == 0.05
    assert Prices().over(prices).find("standard_nc4as_t4_v3", "dedicated", "moon") is None
    found = prices.find(SIZE, "low_priority", REGION)
    assert found is not None
    assert found.dollars == 0.01056


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("region: westeurpe", "region is 'westeurpe', which is not a region of Azure. Did you mean 'westeurope'"),
        ("region: West Europe", "Did you mean 'westeurope'"),
        ("region: moon", "region is 'moon', which is not a region of Azure; write a name such as eastus"),
        ("prices: [{vm_size: a, dollars: 1, region: eastuss}]", "region is 'eastuss', .* Did you mean 'eastus'"),
        ("budget: {}", "unknown keys budget; choose from budgets, grants, prices, region, standing"),
        ("grants: {owner: 5}", "unknown roles owner; choose from coder, contributor, reader"),
        ("grants: {coder: -1}", "coder is -1; it must be a number from 0"),
        ("budgets: {a: {mont: 5}}", "mapping with month or run"),
        ("budgets: {a: {month: -5}}", "month is -5; it must be a number from 0"),
        ("budgets: {a/b: {month: 5}}", "'a/b' is not a name"),
        ("budgets: {a: {month: 5, warn: 90, refuse: 80}}", "warn must not be above refuse"),
        ("prices: [{vm_size: A, dollars: 1, tier: spot}]", "choose from dedicated, low_priority"),
        ("[1]", "must contain a mapping"),
        ("a: [", "can't be read"),
    ],
)
def test_a_money_file_that_makes_no_sense_is_refused(tmp_path: Path, text: str, words: str) -> None:
    """Every error in the money file names the file, the key and the choices."""
    file = tmp_path / "money.yaml"
    file.write_text(text)
    with pytest.raises(BadSetting, match=words) as raised:
        load(file)
    assert str(file) in str(raised.value)


def test_prices_out_of_a_recorded_answer() -> None:
    """Windows, Low Priority, reservations, other regions and future prices are skipped; the newest price counts."""
    found = {price.tier: price for price in read_retail(ANSWER["Items"], SIZE, REGION, NOW)}
    assert found["dedicated"].dollars == 0.096
    assert found["low_priority"].dollars == 0.019
    assert found["low_priority"].at == datetime(2026, 11, 1, tzinfo=UTC)
    assert len(found) == 2
    assert {p.source for p in found.values()} == {RETAIL}


@pytest.mark.parametrize("item", [{}, {"type": "Consumption"}, None, {**ANSWER["Items"][0], "retailPrice": "cheap"}])
def test_an_answer_that_is_no_price_list_is_refused(item: Any) -> None:
    """An invalid item of the API raises, and is never a price."""
    with pytest.raises(BadInput, match="not a price"):
        read_retail([item], SIZE, REGION, NOW)


def test_pages_are_followed_on_the_api_s_own_host_alone() -> None:
    """The adapter requests one size in one region, and follows the next page, but never to another host."""
    first, second = (
        {**ANSWER, "Items": ANSWER["Items"][:2]},
        {**ANSWER, "Items": ANSWER["Items"][2:], "NextPageLink": None},
    )
    with Retail([first, second]) as retail:
        first["NextPageLink"] = f"{retail.url}?$skip=1000"
        found = AzureRetailPrices(retail.url, lambda: NOW).of(SIZE, REGION)
        assert {p.tier: p.dollars for p in found} == {"dedicated": 0.096, "low_priority": 0.019}
        query = parse_qs(urlsplit(retail.asked[0]).query)["$filter"][0]
        assert "armSkuName eq 'Standard_D2s_v5'" in query
        assert "armRegionName eq 'eastus'" in query
        first["NextPageLink"] = "http://elsewhere.invalid/api/retail/prices"
        retail.pages = [first]
        with pytest.raises(BadInput, match="another host"):
            AzureRetailPrices(retail.url, lambda: NOW).of(SIZE, REGION)
    with pytest.raises(NoAnswer, match="does not answer"):
        AzureRetailPrices(retail.url, lambda: NOW).of(SIZE, REGION)


@pytest.mark.parametrize("name", ["", "eastus", "eastus4", "greececentral", "northsaudi", *REGIONS])
def test_a_region_that_azure_may_have_is_accepted(name: str) -> None:
    """The list may lack a new region, such as one more beside a known one."""
    assert region_fault(name) == ""

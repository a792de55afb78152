"""Check the name of an Azure region. Prices are found by region, so a wrong name would silently have no prices. Pure.

The names are those that `az account list-locations` uses (https://learn.microsoft.com/azure/reliability/regions-list).
The list may lack a new region, so an unknown name is accepted if it has the form of a region's name and does not
resemble a known one.
"""

from __future__ import annotations

import difflib
import re

REGIONS = (
    *("eastus", "eastus2", "westus", "westus2", "westus3", "centralus", "northcentralus", "southcentralus"),
    *("westcentralus", "canadacentral", "canadaeast", "brazilsouth", "brazilsoutheast", "mexicocentral"),
    *("chilecentral", "northeurope", "westeurope", "uksouth", "ukwest", "francecentral", "francesouth"),
    *("germanywestcentral", "germanynorth", "norwayeast", "norwaywest", "swedencentral", "swedensouth"),
    *("switzerlandnorth", "switzerlandwest", "polandcentral", "italynorth", "spaincentral", "austriaeast"),
    *("belgiumcentral", "denmarkeast", "israelcentral", "uaenorth", "uaecentral", "qatarcentral"),
    *("southafricanorth", "southafricawest", "eastasia", "southeastasia", "australiaeast", "australiasoutheast"),
    *("australiacentral", "australiacentral2", "japaneast", "japanwest", "koreacentral", "koreasouth"),
    *("centralindia", "southindia", "westindia", "jioindiawest", "jioindiacentral", "indonesiacentral"),
    *("malaysiawest", "newzealandnorth", "taiwannorth", "taiwannorthwest", "usgovvirginia", "usgovarizona"),
    *("usgovtexas", "usdodcentral", "usdodeast", "chinanorth", "chinanorth2", "chinanorth3", "chinaeast"),
    *("chinaeast2", "chinaeast3"),
)
_FORM = re.compile(r"(?:[a-z]+(?:north|south|east|west|central)|(?:north|south|east|west|central)[a-z]+)\d?")
_ALMOST = 0.85


def region_fault(name: str) -> str:
    """Return the fault in the name of a region, as the end of a sentence; '' for a valid name, and for no name."""
    if not name or name in REGIONS:
        return ""
    near = difflib.get_close_matches(name.lower().replace(" ", ""), REGIONS, n=1, cutoff=_ALMOST)
    if near and near[0].rstrip("0123456789") != name.rstrip("0123456789"):
        return f"is {name[:80]!r}, which is not a region of Azure. Did you mean {near[0]!r}?"
    if not _FORM.fullmatch(name):
        return f"is {name[:80]!r}, which is not a region of Azure; write a name such as eastus or westeurope."
    return ""

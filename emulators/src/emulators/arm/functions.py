"""Bicep's functions that depend only on their arguments, by name.

Each function returns the value of Microsoft's engine
(https://learn.microsoft.com/azure/azure-resource-manager/bicep/bicep-functions), which a test checks. A function
outside of these tables is refused by name.
"""

from __future__ import annotations

import base64
import ipaddress
import json
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, unquote, urljoin

from emulators.arm import collection_functions, date_functions, string_functions
from emulators.arm.hashes import guid, unique_string

Json = dict[str, Any]


def to_int(value: Any) -> int:
    return int(value)


def to_bool(value: Any) -> bool:
    """Convert the text true or false, in any case, or a number."""
    if isinstance(value, str):
        return {"true": True, "false": False}[value.lower()]
    return bool(value)


def smallest(*values: Any) -> Any:
    return min(values[0] if isinstance(values[0], list) else values)


def largest(*values: Any) -> Any:
    return max(values[0] if isinstance(values[0], list) else values)


def cidr_subnet(network: str, prefix: int, index: int) -> str:
    found = list(ipaddress.ip_network(network).subnets(new_prefix=prefix))
    return str(found[index])


PURE: dict[str, Callable[..., Any]] = {
    **string_functions.FUNCTIONS,
    **collection_functions.FUNCTIONS,
    **date_functions.FUNCTIONS,
    "base64": lambda value: base64.b64encode(value.encode()).decode(),
    "base64ToJson": lambda value: json.loads(base64.b64decode(value)),
    "base64ToString": lambda value: base64.b64decode(value).decode(),
    "bool": to_bool,
    "cidrSubnet": cidr_subnet,
    "guid": guid,
    "int": to_int,
    "json": json.loads,
    "max": largest,
    "min": smallest,
    "uniqueString": unique_string,
    "uri": urljoin,
    "uriComponent": lambda value: quote(value, safe="!'()*~"),
    "uriComponentToString": unquote,
}

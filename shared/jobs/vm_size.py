"""How many GPUs a VM size of Azure has, and so how many processes a node of it runs: one for each GPU. Pure.

Counts: https://learn.microsoft.com/azure/virtual-machines/sizes/gpu-accelerated/nc-family, nd-family and nv-family.
"""

from __future__ import annotations

import re

GPUS = {
    "Standard_NC4as_T4_v3": 1,
    "Standard_NC8as_T4_v3": 1,
    "Standard_NC16as_T4_v3": 1,
    "Standard_NC64as_T4_v3": 4,
    "Standard_NC6s_v3": 1,
    "Standard_NC12s_v3": 2,
    "Standard_NC24s_v3": 4,
    "Standard_NC24rs_v3": 4,
    "Standard_NC24ads_A100_v4": 1,
    "Standard_NC48ads_A100_v4": 2,
    "Standard_NC96ads_A100_v4": 4,
    "Standard_NC40ads_H100_v5": 1,
    "Standard_NC80adis_H100_v5": 2,
    "Standard_ND40rs_v2": 8,
    "Standard_ND96asr_v4": 8,
    "Standard_ND96amsr_A100_v4": 8,
    "Standard_ND96isr_H100_v5": 8,
    "Standard_ND96isr_H200_v5": 8,
    "Standard_NV36ads_A10_v5": 1,
    "Standard_NV36adms_A10_v5": 1,
    "Standard_NV72ads_A10_v5": 2,
}
_KNOWN = {name.lower(): count for name, count in GPUS.items()}
_SIZE = re.compile(r"Standard_[A-Za-z0-9_-]{1,60}", re.IGNORECASE)
_ACCELERATED = re.compile(r"Standard_N", re.IGNORECASE)


def is_size(name: str) -> bool:
    """Whether the text has the form of a size's name."""
    return bool(_SIZE.fullmatch(name))


def gpus_of(size: str) -> int | None:
    """How many whole GPUs a machine of this size has: 0 for one of processors alone, None for one that is not known."""
    known = _KNOWN.get(size.lower())
    return known if known is not None else None if _ACCELERATED.match(size) else 0


def same(a: str, b: str) -> bool:
    """Whether two names mean one size: Azure's have no case, and its ML service writes them in capitals."""
    return a.lower() == b.lower()

"""Azure VM sizes: GPUs (and so processes) per node, memory, and the successors of retired sizes. Pure.

The numbers are from the pages of the series named beside the sizes,
https://learn.microsoft.com/azure/virtual-machines/sizes/gpu-accelerated/<series>, read on 2026-11-22, except for the
GPU memory of an ND40. Series without a page, or whose page was not read, have the numbers that were known. The page of
retired sizes, ../retirement/retired-sizes-list, omits sizes that were retired long ago.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from shared.kernel.errors import BadSetting


@dataclass(frozen=True)
class VmSize:
    """The hardware of a VM size.

    The numbers are GPUs, GiB of memory per GPU, and GiB of memory per VM. `instead` is the successor of a size that
    Azure retires.
    """

    gpus: int
    gpu_memory: float
    memory: float
    infiniband: bool = False
    instead: str = ""

    def __str__(self) -> str:
        gpus = f"{self.gpus} GPUs of {self.gpu_memory:g} GiB, " if self.gpus else ""
        return f"{gpus}{self.memory:g} GiB of memory".replace("1 GPUs", "1 GPU")


SIZES = {
    # T4; series ncast4v3-series
    "Standard_NC4as_T4_v3": VmSize(1, 16, 28),
    "Standard_NC8as_T4_v3": VmSize(1, 16, 56),
    "Standard_NC16as_T4_v3": VmSize(1, 16, 110),
    "Standard_NC64as_T4_v3": VmSize(4, 16, 440),
    # A100; series nca100v4-series
    "Standard_NC24ads_A100_v4": VmSize(1, 80, 220),
    "Standard_NC48ads_A100_v4": VmSize(2, 80, 440),
    "Standard_NC96ads_A100_v4": VmSize(4, 80, 880),
    # H100; series ncadsh100v5-series
    "Standard_NC40ads_H100_v5": VmSize(1, 94, 320),
    "Standard_NC80adis_H100_v5": VmSize(2, 94, 640),
    # 8 GPUs and InfiniBand; series ndasra100v4-series, ndma100v4-series, ndh100v5-series, nd-h200-v5-series
    "Standard_ND96asr_v4": VmSize(8, 40, 900, infiniband=True),
    "Standard_ND96amsr_A100_v4": VmSize(8, 80, 1900, infiniband=True),
    "Standard_ND96isr_H100_v5": VmSize(8, 80, 1900, infiniband=True),
    "Standard_ND96isr_H200_v5": VmSize(8, 141, 1850, infiniband=True),
    # A10; series nvadsa10v5-series. The first three have a part of a GPU, which appears as one GPU
    "Standard_NV6ads_A10_v5": VmSize(1, 4, 55),
    "Standard_NV12ads_A10_v5": VmSize(1, 8, 110),
    "Standard_NV18ads_A10_v5": VmSize(1, 12, 220),
    "Standard_NV36ads_A10_v5": VmSize(1, 24, 440),
    "Standard_NV36adms_A10_v5": VmSize(1, 24, 880),
    "Standard_NV72ads_A10_v5": VmSize(2, 24, 880),
    # processors alone
    "Standard_D2_v3": VmSize(0, 0, 8),
    "Standard_D4_v3": VmSize(0, 0, 16),
    "Standard_D8_v3": VmSize(0, 0, 32),
    "Standard_E2_v3": VmSize(0, 0, 16),
    "Standard_E4_v3": VmSize(0, 0, 32),
    "Standard_E8_v3": VmSize(0, 0, 64),
    "Standard_E16_v3": VmSize(0, 0, 128),
    "Standard_E32_v3": VmSize(0, 0, 256),
    "Standard_HB120rs_v3": VmSize(0, 0, 448, infiniband=True),
    # K80
    "Standard_NC6": VmSize(1, 12, 56, instead="Standard_NC8as_T4_v3"),
    "Standard_NC12": VmSize(2, 12, 112, instead="Standard_NC64as_T4_v3"),
    "Standard_NC24": VmSize(4, 12, 224, instead="Standard_NC64as_T4_v3"),
    "Standard_NC24r": VmSize(4, 12, 224, infiniband=True, instead="Standard_NC64as_T4_v3"),
    # P100
    "Standard_NC6s_v2": VmSize(1, 16, 112, instead="Standard_NC24ads_A100_v4"),
    "Standard_NC12s_v2": VmSize(2, 16, 224, instead="Standard_NC48ads_A100_v4"),
    "Standard_NC24s_v2": VmSize(4, 16, 448, instead="Standard_NC96ads_A100_v4"),
    "Standard_NC24rs_v2": VmSize(4, 16, 448, infiniband=True, instead="Standard_NC96ads_A100_v4"),
    # P40; series nd-series
    "Standard_ND6s": VmSize(1, 24, 112, instead="Standard_NC24ads_A100_v4"),
    "Standard_ND12s": VmSize(2, 24, 224, instead="Standard_NC48ads_A100_v4"),
    "Standard_ND24s": VmSize(4, 24, 448, instead="Standard_NC96ads_A100_v4"),
    "Standard_ND24rs": VmSize(4, 24, 448, infiniband=True, instead="Standard_NC96ads_A100_v4"),
    # V100; series ncv3-series and ndv2-series
    "Standard_NC6s_v3": VmSize(1, 16, 112, instead="Standard_NC24ads_A100_v4"),
    "Standard_NC12s_v3": VmSize(2, 16, 224, instead="Standard_NC48ads_A100_v4"),
    "Standard_NC24s_v3": VmSize(4, 16, 448, instead="Standard_NC96ads_A100_v4"),
    "Standard_NC24rs_v3": VmSize(4, 16, 448, infiniband=True, instead="Standard_NC96ads_A100_v4"),
    "Standard_ND40s_v2": VmSize(8, 32, 672, instead="Standard_ND96asr_v4"),
    "Standard_ND40rs_v2": VmSize(8, 32, 672, infiniband=True, instead="Standard_ND96asr_v4"),
    # M60; series nv-series and nvv3-series. A card has two GPUs; the page of the NV-series counts cards
    "Standard_NV6": VmSize(1, 8, 56, instead="Standard_NC8as_T4_v3"),
    "Standard_NV12": VmSize(2, 8, 112, instead="Standard_NC64as_T4_v3"),
    "Standard_NV24": VmSize(4, 8, 224, instead="Standard_NC64as_T4_v3"),
    "Standard_NV6s_v2": VmSize(1, 8, 112, instead="Standard_NV36ads_A10_v5"),
    "Standard_NV12s_v2": VmSize(2, 8, 224, instead="Standard_NV72ads_A10_v5"),
    "Standard_NV24s_v2": VmSize(4, 8, 448, instead="Standard_NC96ads_A100_v4"),
    "Standard_NV12s_v3": VmSize(1, 8, 112, instead="Standard_NV36ads_A10_v5"),
    "Standard_NV24s_v3": VmSize(2, 8, 224, instead="Standard_NV72ads_A10_v5"),
    "Standard_NV48s_v3": VmSize(4, 8, 448, instead="Standard_NC96ads_A100_v4"),
    # processors alone
    "Standard_A1": VmSize(0, 0, 1.75, instead="Standard_D2_v3"),
    "Standard_A2": VmSize(0, 0, 3.5, instead="Standard_D2_v3"),
    "Standard_A3": VmSize(0, 0, 7, instead="Standard_D4_v3"),
    "Standard_A4": VmSize(0, 0, 14, instead="Standard_D8_v3"),
    "Standard_A5": VmSize(0, 0, 14, instead="Standard_E2_v3"),
    "Standard_A6": VmSize(0, 0, 28, instead="Standard_E4_v3"),
    "Standard_A7": VmSize(0, 0, 56, instead="Standard_E8_v3"),
    "Standard_A8": VmSize(0, 0, 56, infiniband=True, instead="Standard_E8_v3"),
    "Standard_A9": VmSize(0, 0, 112, infiniband=True, instead="Standard_E16_v3"),
    "Standard_A10": VmSize(0, 0, 56, instead="Standard_E8_v3"),
    "Standard_A11": VmSize(0, 0, 112, instead="Standard_E16_v3"),
    "Standard_H8": VmSize(0, 0, 56, instead="Standard_E8_v3"),
    "Standard_H8m": VmSize(0, 0, 112, instead="Standard_E16_v3"),
    "Standard_H16": VmSize(0, 0, 112, instead="Standard_E16_v3"),
    "Standard_H16m": VmSize(0, 0, 224, instead="Standard_E32_v3"),
    "Standard_H16r": VmSize(0, 0, 112, infiniband=True, instead="Standard_HB120rs_v3"),
    "Standard_H16mr": VmSize(0, 0, 224, infiniband=True, instead="Standard_HB120rs_v3"),
}
_KNOWN = {name.lower(): size for name, size in SIZES.items()}
_SIZE = re.compile(r"Standard_[A-Za-z0-9_-]{1,60}", re.IGNORECASE)
# Series whose machines Azure has switched off: NC, NCv2, NCv3, ND, NV, NVv3 and HB; see docs/retirements.md
_RETIRED = re.compile(
    r"standard_(nc\d+r?(_promo)?|nc\d+r?s_v[23]|nd\d+r?s|nv\d+|nv\d+s_v3|hb\d+(-\d+)?rs)", re.IGNORECASE
)
_ACCELERATED = re.compile(r"Standard_N", re.IGNORECASE)


def is_size(name: str) -> bool:
    """Whether the text has the form of a VM size's name."""
    return bool(_SIZE.fullmatch(name))


def known(name: str) -> VmSize | None:
    """The size with this name, in any case; None for a size that is not in the table."""
    return _KNOWN.get(name.lower())


def gpus_of(name: str) -> int | None:
    """The number of GPUs that a process sees on a machine of this size: 0 without GPUs.

    None for an unknown size of a GPU series.
    """
    if size := known(name):
        return size.gpus
    return None if _ACCELERATED.match(name) else 0


def why_retired(name: str) -> str:
    """Return why machines of this size no longer exist, with the size to use instead; '' for any other size."""
    if not _RETIRED.fullmatch(name):
        return ""
    size = known(name)
    return f"is {name!r}, and Azure has retired this size; use {size.instead if size else 'a newer size'}"


def same(a: str, b: str) -> bool:
    """Whether two names mean one size. Names are case-insensitive, and Azure ML writes capitals."""
    return a.lower() == b.lower()


def gpus_of_entry(entry: Mapping[str, Any], given: int, where: str) -> int:
    """GPUs per node of a route: from the route's entry, else from the VM size; -1 without both."""
    size = str(entry.get("vm_size", ""))
    if size and not is_size(size):
        raise BadSetting(f"{where}: vm_size is {size!r}; write a VM size of Azure, such as Standard_NC24ads_A100_v4.")
    if why := why_retired(size):
        raise BadSetting(f"{where}: vm_size {why}.")
    if "gpus" in entry or not size:
        return given
    if (gpus := gpus_of(size)) is None:
        raise BadSetting(f"{where}: how many GPUs {size} has is not known; state it beside vm_size, as gpus: 4.")
    return gpus

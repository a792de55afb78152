"""VM sizes that Azure has retired, and which of today's does their work: never fewer GPUs, never less memory. Pure.

Sizes and retirements: https://learn.microsoft.com/azure/virtual-machines/sizes/retirement/retired-sizes-list
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Size:
    """GPUs, GiB of memory of each GPU, GiB of memory of the VM."""

    gpus: int
    gpu_memory: float
    memory: float
    infiniband: bool = False

    def __str__(self) -> str:
        gpus = f"{self.gpus} GPUs of {self.gpu_memory:g} GiB, " if self.gpus else ""
        return f"{gpus}{self.memory:g} GiB of memory".replace("1 GPUs", "1 GPU")


TODAY = {
    "Standard_NC8as_T4_v3": Size(1, 16, 56),
    "Standard_NC64as_T4_v3": Size(4, 16, 440),
    "Standard_NC24ads_A100_v4": Size(1, 80, 220),
    "Standard_NC48ads_A100_v4": Size(2, 80, 440),
    "Standard_NC96ads_A100_v4": Size(4, 80, 880),
    "Standard_NV36ads_A10_v5": Size(1, 24, 440),
    "Standard_NV72ads_A10_v5": Size(2, 24, 880),
    "Standard_ND96asr_v4": Size(8, 40, 900, infiniband=True),
    "Standard_D2_v3": Size(0, 0, 8),
    "Standard_D4_v3": Size(0, 0, 16),
    "Standard_D8_v3": Size(0, 0, 32),
    "Standard_E2_v3": Size(0, 0, 16),
    "Standard_E4_v3": Size(0, 0, 32),
    "Standard_E8_v3": Size(0, 0, 64),
    "Standard_E16_v3": Size(0, 0, 128),
    "Standard_E32_v3": Size(0, 0, 256),
    "Standard_HB120rs_v3": Size(0, 0, 448, infiniband=True),
}

RETIRED: dict[str, tuple[Size, str]] = {  # in lower case, without Standard_
    # K80
    "nc6": (Size(1, 12, 56), "Standard_NC8as_T4_v3"),
    "nc12": (Size(2, 12, 112), "Standard_NC64as_T4_v3"),
    "nc24": (Size(4, 12, 224), "Standard_NC64as_T4_v3"),
    "nc24r": (Size(4, 12, 224, infiniband=True), "Standard_NC64as_T4_v3"),
    # P100
    "nc6s_v2": (Size(1, 16, 112), "Standard_NC24ads_A100_v4"),
    "nc12s_v2": (Size(2, 16, 224), "Standard_NC48ads_A100_v4"),
    "nc24s_v2": (Size(4, 16, 448), "Standard_NC96ads_A100_v4"),
    "nc24rs_v2": (Size(4, 16, 448, infiniband=True), "Standard_NC96ads_A100_v4"),
    # P40
    "nd6s": (Size(1, 24, 112), "Standard_NC24ads_A100_v4"),
    "nd12s": (Size(2, 24, 224), "Standard_NC48ads_A100_v4"),
    "nd24s": (Size(4, 24, 448), "Standard_NC96ads_A100_v4"),
    "nd24rs": (Size(4, 24, 448, infiniband=True), "Standard_NC96ads_A100_v4"),
    # V100
    "nc6s_v3": (Size(1, 16, 112), "Standard_NC24ads_A100_v4"),
    "nc12s_v3": (Size(2, 16, 224), "Standard_NC48ads_A100_v4"),
    "nc24s_v3": (Size(4, 16, 448), "Standard_NC96ads_A100_v4"),
    "nc24rs_v3": (Size(4, 16, 448, infiniband=True), "Standard_NC96ads_A100_v4"),
    "nd40s_v2": (Size(8, 32, 672), "Standard_ND96asr_v4"),
    "nd40rs_v2": (Size(8, 32, 672, infiniband=True), "Standard_ND96asr_v4"),
    # M60
    "nv6": (Size(1, 8, 56), "Standard_NC8as_T4_v3"),
    "nv12": (Size(2, 8, 112), "Standard_NC64as_T4_v3"),
    "nv24": (Size(4, 8, 224), "Standard_NC64as_T4_v3"),
    "nv6s_v2": (Size(1, 8, 112), "Standard_NV36ads_A10_v5"),
    "nv12s_v2": (Size(2, 8, 224), "Standard_NV72ads_A10_v5"),
    "nv24s_v2": (Size(4, 8, 448), "Standard_NC96ads_A100_v4"),
    "nv12s_v3": (Size(1, 8, 112), "Standard_NV36ads_A10_v5"),
    "nv24s_v3": (Size(2, 8, 224), "Standard_NV72ads_A10_v5"),
    "nv48s_v3": (Size(4, 8, 448), "Standard_NC96ads_A100_v4"),
    # without GPUs
    "a1": (Size(0, 0, 1.75), "Standard_D2_v3"),
    "a2": (Size(0, 0, 3.5), "Standard_D2_v3"),
    "a3": (Size(0, 0, 7), "Standard_D4_v3"),
    "a4": (Size(0, 0, 14), "Standard_D8_v3"),
    "a5": (Size(0, 0, 14), "Standard_E2_v3"),
    "a6": (Size(0, 0, 28), "Standard_E4_v3"),
    "a7": (Size(0, 0, 56), "Standard_E8_v3"),
    "a8": (Size(0, 0, 56, infiniband=True), "Standard_E8_v3"),
    "a9": (Size(0, 0, 112, infiniband=True), "Standard_E16_v3"),
    "a10": (Size(0, 0, 56), "Standard_E8_v3"),
    "a11": (Size(0, 0, 112), "Standard_E16_v3"),
    "h8": (Size(0, 0, 56), "Standard_E8_v3"),
    "h8m": (Size(0, 0, 112), "Standard_E16_v3"),
    "h16": (Size(0, 0, 112), "Standard_E16_v3"),
    "h16m": (Size(0, 0, 224), "Standard_E32_v3"),
    "h16r": (Size(0, 0, 112, infiniband=True), "Standard_HB120rs_v3"),
    "h16mr": (Size(0, 0, 224, infiniband=True), "Standard_HB120rs_v3"),
}


@dataclass(frozen=True)
class Replacement:
    old: Size
    name: str

    @property
    def new(self) -> Size:
        return TODAY[self.name]


def replacement(size: str) -> Replacement | None:
    """What to take for a size, in whatever case it is written; None for one that is not retired."""
    found = RETIRED.get(size.lower().removeprefix("standard_"))
    return Replacement(*found) if found else None

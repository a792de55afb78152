"""The VM sizes for Azure ML's clusters.

The series are from Microsoft's table ("Supported VM series and sizes",
https://learn.microsoft.com/azure/machine-learning/concept-compute-target), plus the newer GPU series that
Azure/azureml-examples uses as computes. A size of another series is refused with InvalidPropertyValue, "is not a
supported VM size" (Azure/MachineLearningNotebooks#1169 has the message). Standard_D2s_v3 itself ran in the pipeline of
ansible-collections/azure#2209 in April 2026.
"""

from __future__ import annotations

import re

SERIES = {
    "DDSv4": r"d\d+ds_v4",
    "Dv2": r"d\d+_v2",
    "Dv3": r"d\d+_v3",
    "DSv2": r"ds\d+(-\d+)?_v2",
    "DSv3": r"d\d+s_v3",
    "EAv4": r"e\d+a_v4",
    "Ev3": r"e\d+i?_v3",
    "ESv3": r"e\d+(-\d+)?i?s_v3",
    "FSv2": r"f\d+s_v2",
    "FX": r"fx\d+mds",
    "H": r"h\d+m?r?",
    "HBv2": r"hb\d+(-\d+)?rs_v2",
    "HBv3": r"hb\d+(-\d+)?rs_v3",
    "HC": r"hc\d+(-\d+)?rs",
    "LSv2": r"l\d+s_v2",
    "M": r"m\d+(-\d+)?m?s?",
    "NDv2": r"nd\d+rs_v2",
    "NCasT4_v3": r"nc\d+as_t4_v3",
    "NDasrA100_v4": r"nd\d+asr_v4",
    "NDamsrA100_v4": r"nd\d+amsr_a100_v4",
    "NCadsA100_v4": r"nc\d+ads_a100_v4",
    "NCadsH100_v5": r"nc\d+adi?s_h100_v5",
    "NDisrH100_v5": r"nd\d+isr_h100_v5",
    "NDisrH200_v5": r"nd\d+isr_h200_v5",
}
# Azure has switched off the machines of these series:
# https://learn.microsoft.com/azure/virtual-machines/sizes/retirement/retired-sizes-list
RETIRED = {
    "HB": r"hb\d+(-\d+)?rs",
    "NC": r"nc\d+r?(_promo)?",
    "NCv2": r"nc\d+r?s_v2",
    "NCv3": r"nc\d+r?s_v3",
    "ND": r"nd\d+r?s",
    "NV": r"nv\d+",
    "NVv3": r"nv\d+s_v3",
}
# The error is called UnsupportedVMSizeForLowPriority. vmSizes does not show these sizes as unsupported.
DEDICATED_ONLY = re.compile(r"_h[12]00_")


def refused_size(size: str, priority: str) -> str:
    """Return the reason why Azure ML refuses a cluster of this VM size, or ''."""
    short = size.lower().removeprefix("standard_")
    for series, pattern in RETIRED.items():
        if re.fullmatch(pattern, short):
            return f"{size} is not a supported VM size of Azure ML: Azure has retired the series {series}"
    if not any(re.fullmatch(pattern, short) for pattern in SERIES.values()):
        return f"{size} is not a supported VM size of Azure ML; its series are {', '.join(SERIES)}"
    if priority == "LowPriority" and DEDICATED_ONLY.search(short):
        return f"The VM size {size} is not allowed for LowPriority; take Dedicated or another size"
    return ""

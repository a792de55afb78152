"""Shares of a whole, and values of metrics, as text. page/format.js writes the same."""

from __future__ import annotations

import math


def share(part: float) -> str:
    """Format a share, from 0 to 1, in whole percent: `13 %`."""
    return f"{math.floor(part * 100 + 0.5)} %"


def fine_share(part: float) -> str:
    """Format a share, from 0 to 1, in percent with two decimals: `91.23 %`."""
    return f"{math.floor(part * 10_000 + 0.5) / 100:.2f} %"


def metric(name: str, value: float) -> str:
    """Format the value of a metric: an accuracy from 0 to 1 in percent, any other value with five digits."""
    return fine_share(value) if is_share(name, value) else f"{value:.5g}"


def is_share(name: str, value: float) -> bool:
    """Return whether the value of this metric is a share. Some scripts log an accuracy in percent, up to 100."""
    return name.endswith("accuracy") and 0 <= value <= 1

"""Money in words: what a run may cost, and what it has cost."""

from __future__ import annotations

from typing import Any

from ..terminal_text import one_line


def dollars(amount: float) -> str:
    """Dollars and cents: `$1,234.50`; `<$0.01` for less; `-$0.50` below zero. page/format.js writes the same."""
    sign, size = "-" if amount < 0 else "", abs(amount)
    return f"{sign}<$0.01" if 0 < size < 0.01 else f"{sign}${size:,.2f}"


def share(part: float) -> str:
    """A part of 1 in whole percent: `13 %`."""
    return f"{int(part * 100 + 0.5)} %"


def saved(amount: float) -> str:
    """What was saved, or a cost: `$1.50 less`, `$0.02 more`."""
    return f"{dollars(abs(amount))} {'less' if amount >= 0 else 'more'}"


def before(estimated: float | None, greatest: float | None, unknown: str = "") -> str:
    """`about $0.40, at most $2.10`, or why that is not known."""
    if greatest is None:
        return one_line(unknown) or "unknown"
    likely = dollars(estimated) if estimated is not None else ""
    about = f"{'' if likely.startswith('<') else 'about '}{likely}, " if likely else ""
    return f"{about}at most {dollars(greatest)}"


def of_run(run: dict[str, Any]) -> str:
    """What a run has cost, split, `so far` while the run goes on; or what it may cost, before it has. A sweep's cost is
    that of its trials.
    """
    over = run.get("state") in ("completed", "failed", "canceled")
    if sweep := run.get("sweep"):
        trials = f"{dollars(sweep['trials_dollars'])} for its trials"
        return trials if over else f"{trials} so far ({before(None, run.get('greatest_cost'), 'no price is known')})"
    may = before(run.get("estimated_cost"), run.get("greatest_cost"), run.get("price_from") or "not known yet")
    cost = run.get("cost")
    if not cost and over:
        began = any(moment["state"] == "running" for moment in run.get("history") or [])
        return f"not charged yet ({may})" if began else "none, it never had a node"
    if not cost:
        return may
    parts = ", ".join(f"{kind} {dollars(cost[kind])}" for kind in ("training", "allocation", "idle") if cost[kind])
    total = dollars(cost["training"] + cost["allocation"] + cost["idle"])
    missing = ", some of it without a price" if cost["unpriced"] else ""
    so_far = "" if over else " so far"
    return f"{total}{so_far}{f': {parts}' if parts else ''}{missing} ({may})"

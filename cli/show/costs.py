"""Text for amounts of money: the possible cost of a run, and the cost so far."""

from __future__ import annotations

from typing import Any

from ..terminal_text import one_line


def dollars(amount: float) -> str:
    """Format an amount: `$1,234.50`, or `<$0.01` for a smaller amount than a cent."""
    sign, size = "-" if amount < 0 else "", abs(amount)
    return f"{sign}<$0.01" if 0 < size < 0.01 else f"{sign}${size:,.2f}"


def share(part: float) -> str:
    """Format a share, from 0 to 1, in whole percent: `13 %`."""
    return f"{int(part * 100 + 0.5)} %"


def saved(amount: float) -> str:
    """Format an amount of savings, or of additional cost: `$1.50 less`, `$0.02 more`."""
    return f"{dollars(abs(amount))} {'less' if amount >= 0 else 'more'}"


def before(estimated: float | None, greatest: float | None, unknown: str = "") -> str:
    """Format a cost estimate: `about $0.40, at most $2.10`, or the reason why there is none."""
    if greatest is None:
        return one_line(unknown) or "unknown"
    likely = dollars(estimated) if estimated is not None else ""
    about = f"{'' if likely.startswith('<') else 'about '}{likely}, " if likely else ""
    return f"{about}at most {dollars(greatest)}"


def of_run(run: dict[str, Any]) -> str:
    """Return the cost of a run so far, by kind, with the estimate; only the estimate before the first charge. For a
    sweep, return the trials' cost.
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
    missing = ", some node hours without a price" if cost["unpriced"] else ""
    so_far = "" if over else " so far"
    return f"{total}{so_far}{f': {parts}' if parts else ''}{missing} ({may})"

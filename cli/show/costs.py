"""Money in words: what a run may cost, and what it has cost."""

from __future__ import annotations

from typing import Any

from ..terminal_text import one_line


def dollars(amount: float) -> str:
    """Dollars and cents: `$1,234.50`; `<$0.01` for less."""
    return "<$0.01" if 0 < amount < 0.01 else f"${amount:,.2f}"


def before(estimated: float | None, greatest: float | None, unknown: str = "") -> str:
    """`about $0.40, at most $2.10`, or why that is not known."""
    if greatest is None:
        return one_line(unknown) or "unknown"
    likely = dollars(estimated) if estimated is not None else ""
    about = f"{'' if likely.startswith('<') else 'about '}{likely}, " if likely else ""
    return f"{about}at most {dollars(greatest)}"


def of_run(run: dict[str, Any]) -> str:
    """What a run has cost so far, split; or what it may cost, before it has. A sweep's is that of its trials."""
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
    return f"{total} so far{f': {parts}' if parts else ''}{missing} ({may})"

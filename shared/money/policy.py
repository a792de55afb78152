"""What the money file says: what each project may spend, and prices of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from shared.money.prices import Prices


@dataclass(frozen=True)
class Budget:
    """What a project may spend, in dollars: in a month of UTC, and for one run. None is no limit.

    `warn` and `refuse` are percent. `grace_seconds` passes between the moment that all is spent and the cancellation of
    what runs, so that it can write a checkpoint.
    """

    month: float | None = None
    run: float | None = None
    warn: float = 80.0
    refuse: float = 100.0
    grace_seconds: float = 300.0


@dataclass(frozen=True)
class Policy:
    """The money file. `prices` are its own, `shipped` those that come with the app.

    `standing` are dollars a month of what costs without any node, by name.
    """

    region: str = ""
    budgets: Mapping[str, Budget] = field(default_factory=dict)
    prices: Prices = field(default_factory=Prices)
    shipped: Prices = field(default_factory=Prices)
    standing: Mapping[str, float] = field(default_factory=dict)

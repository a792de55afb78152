"""The contents of the money file: project budgets and custom prices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from shared.kernel.operation import CODER
from shared.money.prices import Prices


@dataclass(frozen=True)
class Budget:
    """The limits on a project's spending, in dollars, per month in UTC and per run. None means no limit.

    `warn` and `refuse` are percentages. `grace_seconds` is the time between reaching the limit and canceling the
    running runs, so that they can write a checkpoint.
    """

    month: float | None = None
    run: float | None = None
    warn: float = 80.0
    refuse: float = 100.0
    grace_seconds: float = 300.0


@dataclass(frozen=True)
class Policy:
    """The money file. `prices` come from the file; `shipped` come with the app.

    `standing` maps each cost that exists without nodes to dollars per month. `grants` maps each role to the largest
    budget of a grant that people with this role may create; a role has the largest of the roles before it, too.
    """

    region: str = ""
    budgets: Mapping[str, Budget] = field(default_factory=dict)
    prices: Prices = field(default_factory=Prices)
    shipped: Prices = field(default_factory=Prices)
    standing: Mapping[str, float] = field(default_factory=dict)
    grants: Mapping[str, float] = field(default_factory=lambda: {CODER: 100.0})

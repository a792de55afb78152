"""The faults of a schedule, drawn once per schedule: some have one kind of fault only, and others all."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

SERVICES = {  # the ports that fail together
    "tables": ("drops", "runs", "decisions", "samples", "leases", "models", "journals"),
    "blobs": ("blobs",),
    "queues": ("queues",),
    "azureml": ("jobs", "clusters"),
    "topic": ("events",),
}


SLOW_AT = (  # the steps that concurrent calls must not bypass
    ("drops", "replace"), ("drops", "replace"), ("runs", "update"), ("runs", "insert"), ("jobs", "submit"),
    ("jobs", "cancel"), ("queues", "send"), ("clusters", "scale"), ("decisions", "latest"), ("blobs", "write"),
    ("models", "write"),
)  # fmt: skip


@dataclass
class Faults:
    """Probabilities per call (crash to lost_answer), per message or event (duplicate to poison_soon), or per step (the
    rest).

    `crash`: the process dies before, after or half-way through the call. `refuse`: throttled, no effect. `lost_answer`:
    the call took effect, and its caller gets an error.
    """

    crash: float = 0.0
    refuse: float = 0.0
    lost_answer: float = 0.0
    duplicate: float = 0.0
    lose: float = 0.0
    lapse: float = 0.0  # a message becomes visible again while it is being handled
    stall: float = 0.0  # time passes in the middle of everything
    outage: float = 0.0  # a whole service is away for some time
    stale_seconds: float = 0.0  # how old a list of jobs may be
    skew_seconds: float = 0.0  # the storage's clock minus ours
    slow_at: tuple[str, str] | None = None  # port and method: its caller may be overtaken by many others
    only: tuple[str, ...] = ()  # the ports that have faults; all if there are none
    down: set[str] = field(default_factory=set)  # ports that don't answer now

    @classmethod
    def drawn(cls, random: Random) -> Faults:
        def some(*choices: float) -> float:
            return random.choice(choices) if random.random() < 0.5 else 0.0

        return cls(
            crash=some(0.002, 0.01, 0.04),
            refuse=some(0.005, 0.03),
            lost_answer=some(0.005, 0.03),
            duplicate=some(0.1, 0.4),
            lose=some(0.05, 0.3),
            lapse=some(0.02, 0.2),
            stall=some(0.01, 0.05),
            outage=some(0.005, 0.02),
            stale_seconds=some(5.0, 40.0),
            skew_seconds=some(-3.0, 3.0),
            slow_at=random.choice(SLOW_AT) if random.random() < 0.8 else None,
        )

    def heal(self) -> None:
        """End all faults. Wrong clocks and stale lists stay, since nothing repairs them."""
        self.crash = self.refuse = self.lost_answer = self.duplicate = self.lose = self.lapse = 0.0
        self.stall = self.outage = 0.0
        self.only = ()
        self.slow_at = None
        self.down = set()

    def word(self, random: Random, port: str) -> str:
        """Return the fate of one call: "", "refuse", "lost_answer", or "before", "half", "after" for a crash."""
        if self.only and port not in self.only:
            return ""
        if port in self.down:
            return "refuse"
        total = self.crash + self.refuse + self.lost_answer
        if not total or (drawn := random.random()) >= total:
            return ""
        if drawn < self.crash:
            return random.choice(("before", "half", "after"))
        return "refuse" if drawn < self.crash + self.refuse else "lost_answer"

"""Simulated months: users, drops, leases, budgets, preemptions and API errors on five clusters, one month a seed.

python3 trainyard.py bench money_month [--quick] [--json] [--seeds N] [--first SEED] [--seconds S]

Stops at the first month whose books differ from the simulator's bill, or whose budget is exceeded by more than its
bound. Without --first, each call draws its own seeds, and prints the first seed.
"""

from __future__ import annotations

import json
import logging
import secrets
import tempfile
import time
from collections import Counter
from pathlib import Path

from benchmarks._options import options
from tests.fakes.world import trainers_folder
from tests.shared.money.money_month import Month
from tests.shared.money.test_money_month import check, happened

SEEDS = 1_000_000_000


def main(argv: list[str] | None = None) -> None:
    parser = options(__doc__, "one month")
    parser.add_argument("--seeds", type=int, default=200, help="how many months; default 200")
    parser.add_argument("--first", type=int, help="the first seed; by default drawn at random")
    parser.add_argument("--seconds", type=float, default=600, help="begin no month after so many; default 600")
    asked = parser.parse_args(argv)
    if asked.quick:
        asked.seeds = 1
    if asked.first is None:
        asked.first = secrets.randbelow(SEEDS)
    print(f"the first seed is {asked.first}", flush=True)
    logging.disable(logging.WARNING)
    found, began, played = Counter[str](), time.monotonic(), 0
    with tempfile.TemporaryDirectory() as folder:
        trainers = trainers_folder(Path(folder))
        for seed in range(asked.first, asked.first + asked.seeds):
            if time.monotonic() - began > asked.seconds:
                break
            month = Month(seed, trainers)
            month.play()
            check(month)
            found += happened(month)
            played += 1
    print(f"{played} months add up: " + ", ".join(f"{count:,} {what}" for what, count in sorted(found.items())))
    if asked.json:
        print(json.dumps({"months": played, **found}))


if __name__ == "__main__":
    main()

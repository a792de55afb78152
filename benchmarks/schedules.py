"""Play random schedules of tests/simulation, each from its own seed, and stop at the first that breaks a rule.

python3 trainyard.py bench schedules --seconds 600              as many as that time allows
python3 trainyard.py bench schedules --seed 70000               beginning with this seed
python3 trainyard.py bench schedules --replay 4711              this one alone, with all that happened in it
"""

from __future__ import annotations

import itertools
import json
import logging
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from benchmarks._options import options
from tests.fakes.world import trainers_folder
from tests.simulation.outcome import Outcome
from tests.simulation.simulation import ALSO, play

SHOWN = 60  # lines of a broken schedule's trace
MOST_STARTED_AT = 1_000_000


def main(argv: list[str]) -> int:
    parser = options(__doc__, "10 seconds")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long to go on (default 60)")
    parser.add_argument("--seed", type=int, help="the first seed; default: another one every time")
    parser.add_argument(
        "--also", choices=ALSO, default="", help="with dates, sweeps, removals, challenges or late jobs"
    )
    parser.add_argument("--replay", type=int, metavar="SEED", help="play this schedule only, and print its trace")
    arguments = parser.parse_args(argv)
    if arguments.quick:
        arguments.seconds = 10.0
    logging.disable(logging.CRITICAL)  # the app would warn of every simulated fault
    with tempfile.TemporaryDirectory() as folder:
        trainers = trainers_folder(Path(folder))
        if arguments.replay is not None:
            return replay(arguments.replay, trainers, arguments.also)
        first = arguments.seed if arguments.seed is not None else time.time_ns() % MOST_STARTED_AT
        return play_many(first, arguments.seconds, trainers, arguments.also, arguments.json)


def replay(seed: int, trainers: Path, also: str) -> int:
    outcome = play(seed, trainers, traced=True, also=also)
    print("\n".join(outcome.trace))
    print(verdict(outcome))
    return int(bool(outcome.broken))


def play_many(first: int, seconds: float, trainers: Path, also: str, as_json: bool) -> int:
    began, played, calls = time.monotonic(), 0, 0
    periods: Counter[int] = Counter()
    came: Counter[str] = Counter()
    for seed in itertools.count(first):
        outcome = play(seed, trainers, also=also)
        played, calls = played + 1, calls + outcome.calls
        came += outcome.counts
        periods[outcome.periods] += 1
        if outcome.broken or time.monotonic() - began > seconds:
            break
    minutes = (time.monotonic() - began) / 60
    print(f"{played} schedules from seed {first}, {played / minutes:,.0f} a minute; {calls / played:.0f} calls each")
    for what, count in sorted(came.items()):
        print(f"  {count:8} {what}")
    print(f"periods until healed: {', '.join(f'{n} of {count}' for n, count in sorted(periods.items()))}")
    if outcome.broken:
        print("\n".join(play(outcome.seed, trainers, traced=True, also=also).trace[-SHOWN:]))
        print(verdict(outcome))
    if as_json:
        print(json.dumps({"schedules": played, "a_minute": round(played / minutes), "broken": bool(outcome.broken)}))
    return int(bool(outcome.broken))


def verdict(outcome: Outcome) -> str:
    if not outcome.broken:
        return f"seed {outcome.seed}: all rules hold; it took {outcome.periods} periods to heal"
    return f"seed {outcome.seed} BREAKS a rule: {outcome.broken}\nAll of it: bench schedules --replay {outcome.seed}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Hostile programs, each with the token of a grant: what they spend above the grant, and what they see of others.

    python3 trainyard.py bench grants [--sessions N] [--real N] [--first SEED] [--seconds S] [--quick] [--json]

A session submits in bursts, repeats after kills of the app, lets sweeps grow, retries, keeps nodes warm, uploads drops,
runs code, forges tokens, asks for things of others, and writes prompts into names and notes, while the creator narrows,
extends and revokes the grant, and clocks jump. The oracle knows nothing of the books: it adds up the minutes of the
nodes of the grant's own cluster, and searches each answer for words that only others have. With --real, so many shorter
sessions are played on a local cloud too, four at a time. Ends with 1 if anything is wrong.
"""

from __future__ import annotations

import json
import logging
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from benchmarks import _grants_on_cloud
from benchmarks._options import options
from tests.fakes.world import trainers_folder
from tests.shared.grants.hostile import Session


def main(argv: list[str] | None = None) -> int:
    parser = options(__doc__, "20 sessions")
    parser.add_argument("--sessions", type=int, default=1000, help="how many; default 1000")
    parser.add_argument("--real", type=int, default=0, help="how many sessions on a real local cloud; default 0")
    parser.add_argument("--first", type=int, default=0, help="the first seed; default 0")
    parser.add_argument("--seconds", type=float, default=7200, help="begin no session after so many; default 7200")
    asked = parser.parse_args(argv)
    logging.disable(logging.CRITICAL)
    tried, wrong, over, leaks, played = Counter[str](), list[str](), 0, 0, 0
    began, cpu = time.monotonic(), time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        trainers = trainers_folder(Path(folder))
        for seed in range(asked.first, asked.first + (20 if asked.quick else asked.sessions)):
            if time.monotonic() - began > asked.seconds:
                break
            figures = Session(seed, trainers).play()
            played, over, leaks = played + 1, over + figures.over_cents, leaks + figures.leaks
            tried += figures.tried
            wrong += figures.words
            for words in figures.words:
                print(f"seed {seed}: {words}", flush=True)
        if asked.real:
            found = _grants_on_cloud.play(asked.real, asked.first, Path(folder), asked.seconds)
            played, over, leaks = played + found.tried["sessions"], over + found.over_cents, leaks + found.leaks
            wrong += found.words
            print("\n".join([f"on the local cloud: {dict(found.tried)}", *found.words]), flush=True)
    print(f"{played} sessions in {time.process_time() - cpu:.0f} s of processor time: {over} cents, {leaks} leaks")
    print(", ".join(f"{name} {count:,}" for name, count in tried.most_common()))
    if asked.json:
        print(json.dumps({"sessions": played, "over_cents": over, "leaks": leaks}))
    return 1 if wrong or over or leaks else 0


if __name__ == "__main__":
    sys.exit(main())

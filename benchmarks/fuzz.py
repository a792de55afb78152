"""Coverage-guided fuzzing of every reader of outside bytes: `bench fuzz [--seconds N] [TARGET ...]`.

Each target runs for N seconds (default 60). A fault ends its turn, and leaves the input in a file that is named.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.fuzz.targets import TARGETS

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench fuzz", description=__doc__)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"out of {', '.join(TARGETS)}")
    asked = parser.parse_args()
    return max([fuzz(name, asked.seconds) for name in asked.targets or TARGETS])


def fuzz(target: str, seconds: int) -> int:
    folder = tempfile.mkdtemp(prefix=f"fuzz-{target}-")
    Path(folder, target).mkdir()
    options = [f"-max_total_time={seconds}", f"-artifact_prefix={folder}/", "-max_len=4000"]
    done = subprocess.run(
        [sys.executable, "-m", "tests.fuzz.guided", target, folder, *options],
        cwd=ROOT, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    found = re.findall(r"#(\d+)\s+DONE\s+cov: (\d+)", done.stderr)
    runs, coverage = found[-1] if found else ("?", "?")
    print(
        f"{target:10} {runs:>9} inputs, {coverage:>5} branches, {'ok' if done.returncode == 0 else 'FAULT'}", flush=True
    )
    if done.returncode:
        print(done.stderr[-3000:])
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())

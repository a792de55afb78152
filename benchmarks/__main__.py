"""`python3 trainyard.py bench [NAME [ARGUMENT ...]]`: run one benchmark, or all of them without a name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent


def main(argv: list[str]) -> int:
    names = sorted(p.stem for p in FOLDER.glob("*.py") if not p.stem.startswith("_"))
    if argv and argv[0] not in names:
        print(f"{__doc__}\n\nBenchmarks: {', '.join(names)}. Each has its own --help.")
        return 0 if argv[0] in ("-h", "--help") else 2
    chosen, rest = ([argv[0]], argv[1:]) if argv else (names, [])
    return max([run(name, rest) for name in chosen], default=0)


def run(name: str, arguments: list[str]) -> int:
    print(f"== {name}", flush=True)
    return subprocess.run([sys.executable, "-m", f"benchmarks.{name}", *arguments], cwd=FOLDER.parent).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

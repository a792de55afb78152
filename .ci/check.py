"""The whole gate, as CI runs it: format, lint, types, tests. Every step runs, even after one that failed.

Called by `python3 trainyard.py check`, in an environment that has requirements-dev.txt.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STEPS = {
    "format": ["ruff", "format", "--check", "."],
    "lint": ["ruff", "check", "."],
    "types": ["mypy"],
    # Files in their order: by default those with few tests, which are the long ones, would come last.
    "tests": ["pytest", "-n", "2", "--dist", "loadfile", "--no-loadscope-reorder", "--durations=25"],
}


def main() -> int:
    rows = [(name, *run(name, argv)) for name, argv in STEPS.items()]
    sys.stdout.write("\n" + "".join(f"{name:8} {seconds:6.1f} s  {verdict}\n" for name, seconds, verdict in rows))
    return 0 if all(verdict == "ok" for *_, verdict in rows) else 1


def run(name: str, argv: list[str]) -> tuple[float, str]:
    """Run one step in the repository; returns its seconds and "ok" or what to do."""
    sys.stdout.write(f"== {name}: {' '.join(argv)}\n")
    sys.stdout.flush()
    began = time.monotonic()
    status = subprocess.run([sys.executable, "-m", *argv], cwd=ROOT).returncode
    return time.monotonic() - began, "ok" if status == 0 else f"FAILED (exit {status})"


if __name__ == "__main__":
    sys.exit(main())

"""The emulators' own check: format, lint, types, tests. It needs `pip install -e "./emulators[test]"`, and nothing else
from the surrounding repository.

    python check.py            every step, even after a failed step
    python check.py tests -k storage
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
STEPS = {
    "format": ["ruff", "format", "--check", "."],
    "lint": ["ruff", "check", "."],
    "types": ["mypy"],
    "tests": ["pytest"],
}


def main(argv: list[str]) -> int:
    if argv and argv[0] not in STEPS:
        sys.stderr.write(f"There is no step {argv[0]!r}; the steps are {', '.join(STEPS)}.\n")
        return 2
    steps = {argv[0]: [*STEPS[argv[0]], *argv[1:]]} if argv else STEPS
    return max(subprocess.run([sys.executable, "-m", *step], cwd=HERE).returncode for step in steps.values())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Coverage-guided fuzzing of one target: `python -m tests.fuzz.guided TARGET [libFuzzer options]`.

It ends by itself with -runs=N or -max_total_time=SECONDS, and with a file that holds the input on a fault.
"""

from __future__ import annotations

import sys

import atheris


def main() -> None:
    with atheris.instrument_imports(include=["shared", "functions"]):
        from tests.fuzz.targets import TARGETS
    target = TARGETS[sys.argv.pop(1)]
    atheris.Setup(sys.argv, target)
    atheris.Fuzz()


if __name__ == "__main__":
    main()

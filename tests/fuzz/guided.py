"""Coverage-guided fuzzing: `python -m tests.fuzz.guided TARGET[,TARGET ...] CORPUS [libFuzzer options]`.

The code is instrumented once; then each target has its own process, and the folder of its name in CORPUS. A target ends
by itself with -runs=N or -max_total_time=SECONDS, and on a fault, with a file that contains the input. The exit status
is the number of targets with a fault.
"""

from __future__ import annotations

import os
import sys

import atheris


def main() -> None:
    names, corpus, *options = sys.argv[1:]
    with atheris.instrument_imports(include=["shared", "functions"]):
        from tests.fuzz.targets import TARGETS
    faults = 0
    for name in names.split(","):
        child = os.fork()
        if child == 0:
            atheris.Setup([sys.argv[0], *options, f"{corpus}/{name}"], TARGETS[name])
            atheris.Fuzz()
        faults += os.waitpid(child, 0)[1] != 0
    sys.exit(faults)


if __name__ == "__main__":
    main()

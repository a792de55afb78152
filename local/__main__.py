"""`python3 trainyard.py demo`, `tour`, `up` and `down`.

The imports of these commands take a second, or longer on a busy machine. This module handles Ctrl-C before the imports
begin.
"""

from __future__ import annotations

import os
import signal
import sys
from importlib import import_module

PROGRAMS = {"demo": "local.demo.run", "tour": "local.tour", "up": "local.up", "down": "local.down"}
INTERRUPTED = 130


def main(argv: list[str]) -> int:
    # a shell's background processes ignore Ctrl-C
    heeds = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if heeds:  # nothing has started yet; an exception would print a traceback, or become a C module's ImportError
        signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
    program = import_module(PROGRAMS[argv[0]])
    if heeds:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        status: int = program.main(argv[1:])
    except KeyboardInterrupt:
        status = INTERRUPTED
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

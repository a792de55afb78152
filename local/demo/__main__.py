"""`python3 trainyard.py demo`. What it needs takes a second to import, so Ctrl-C is heeded from here on."""

from __future__ import annotations

import sys


def main(argv: list[str] | None = None) -> int:
    try:
        from local.demo.run import main as run

        return run(argv)
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())

"""The options of every benchmark: --quick for the nightly check, and --json for machines."""

from __future__ import annotations

import argparse


def options(description: str | None, quick: str) -> argparse.ArgumentParser:
    """Return a parser with both options. `quick` describes what --quick does, which takes about a minute."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=f"{quick}, within about a minute")
    parser.add_argument("--json", action="store_true", help="the last line is one JSON object of the figures")
    return parser

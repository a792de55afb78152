"""`python3 trainyard.py diagnose`: why a training failed, from its log alone."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from shared.diagnosis import diagnose_log
from shared.diagnosis.causes import Diagnosis
from shared.diagnosis.log_file import decoded, log_text

UNSAFE = {code: f"\\x{code:02x}" for code in (*range(9), *range(11, 32), *range(127, 160))}


def main(argv: list[str] | None = None) -> int:
    """Print the diagnosis of a log. Returns 0, or 3 if the file can't be read."""
    options = _parser().parse_args(argv)
    try:
        text = decoded(sys.stdin.buffer.read()) if options.file == "-" else log_text(Path(options.file))
    except OSError as error:
        sys.stderr.write(f"diagnose: {options.file} can't be read: {error.strerror}\n")
        return 3
    found = diagnose_log(text, options.exit_code)
    sys.stdout.write(json.dumps(asdict(found)) + "\n" if options.json else shown(found))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="trainyard.py diagnose",
        description="Print why a training failed, from its log. Works offline, for any PyTorch or TensorFlow training.",
    )
    parser.add_argument("file", metavar="FILE", help="the log; - for standard input")
    parser.add_argument(
        "--exit-code", type=int, help="the exit code of the training, or minus the signal that ended it"
    )
    parser.add_argument("--json", action="store_true", help="print the diagnosis as one JSON object")
    return parser


def shown(found: Diagnosis) -> str:
    """Return the diagnosis as text: the cause, the lines that show the cause, and what to do."""
    lines = [found.summary, f"Cause: {found.cause.value}. Certainty: {found.certainty.value}."]
    for quote in found.evidence:
        rank = f" [rank {quote.rank}]" if quote.rank is not None else ""
        lines.append(f"  line {quote.number}{rank}: {quote.text}")
    lines += [f"- {step}" for step in found.advice]
    return "".join(f"{line.translate(UNSAFE)}\n" for line in lines)


if __name__ == "__main__":
    sys.exit(main())

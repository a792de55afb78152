"""`python -m emulator_tests.azurite_suite --azurite DIR`: run Azurite's own tests against the emulator.

DIR is a checkout of https://github.com/Azure/Azurite in which `npm ci` has run. Nothing is changed there. `shim.js`
starts the emulator wherever a test starts a server of Azurite's. Tests that start none are tests of Azurite's own code,
and are not run.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from emulator_tests.azurite_suite.results import FileResult, line, table

SHIM = Path(__file__).with_name("shim.js")
REPORTER = Path(__file__).with_name("reporter.js")
STARTS = ("TestServerFactory", "createTableServer", "new Server(", "new QueueServer(", "new TableServer(")
SECONDS = 600  # for one file
EACH_MS = 60_000  # for one test; Azurite's own command sets no limit


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m emulator_tests.azurite_suite", description=__doc__)
    parser.add_argument("--azurite", type=Path, required=True, metavar="DIR", help="a checkout of Azurite")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write each test and its outcome to this file")
    parser.add_argument("only", nargs="*", help="run only files whose path contains one of these words")
    arguments = parser.parse_args(argv)
    checkout = arguments.azurite.resolve()
    if not (checkout / "node_modules" / ".bin" / "mocha").exists():
        parser.error(f"{checkout} has no node_modules/.bin/mocha; run `npm ci` there.")
    found = []
    for file in files(checkout, arguments.only):
        found.append(run(checkout, file))
        sys.stderr.write(f"{line(found[-1])}\n")  # a run takes minutes
    if arguments.json:
        arguments.json.write_text(json.dumps({one.name: one.outcomes for one in found}, indent=1), "utf-8")
    sys.stdout.write(table(found) + "\n")
    return 0


def files(checkout: Path, only: list[str]) -> list[Path]:
    """Return the test files that start a server."""
    every = sorted(
        path for kind in ("queue", "table", "blob") for path in (checkout / "tests" / kind).rglob("*.test.ts")
    )
    chosen = [path for path in every if not only or any(word in str(path) for word in only)]
    return [path for path in chosen if any(start in path.read_text("utf-8") for start in STARTS)]


def run(checkout: Path, file: Path) -> FileResult:
    """Run one file with mocha, and return the outcome of each test. A file without a report also has an outcome."""
    name = str(file.relative_to(checkout / "tests"))
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        said = _mocha(checkout, file, report)
        if not report.exists():
            return FileResult(name, {"(the whole file)": f"no report: {said[-400:]}"})
        return FileResult(name, outcomes(json.loads(report.read_text("utf-8"))))


def _mocha(checkout: Path, file: Path, report: Path) -> str:
    argv = ["node_modules/.bin/mocha", "--require", "ts-node/register", "--require", str(SHIM), "--exit"]
    argv += ["--timeout", str(EACH_MS), "--reporter", str(REPORTER)]
    argv += ["--reporter-option", f"output={report}", str(file)]
    if "/blob/" in str(file):
        argv += ["--grep", "@loki"]  # as Azurite's own command does
    env = {**os.environ, "EMULATOR_PYTHON": sys.executable, "TS_NODE_TRANSPILE_ONLY": "1"}
    env["NODE_TLS_REJECT_UNAUTHORIZED"] = "0"  # as Azurite's own command does
    try:
        done = subprocess.run(argv, cwd=checkout, env=env, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return f"ran longer than {SECONDS} s"
    return done.stdout + done.stderr


def outcomes(report: dict[str, Any]) -> dict[str, str]:
    """Return the outcome of each test by its title: '' for a pass, 'skipped', or the error. Azurite has tests of the
    same title; each counts."""
    every = [(one["fullTitle"], "") for one in report["passes"]]
    every += [(one["fullTitle"], "skipped") for one in report["pending"]]
    every += [(one["fullTitle"], one["err"].get("message", "failed")[:300]) for one in report["failures"]]
    found: dict[str, str] = {}
    for title, outcome in every:
        again = sum(known == title or known.startswith(f"{title} (again") for known in found)
        found[f"{title} (again, {again})" if again else title] = outcome
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

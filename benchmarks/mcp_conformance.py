"""The Model Context Protocol's own conformance tests against the tools for agents.

    python3 trainyard.py bench mcp_conformance [--url URL] [--quick] [--json]

The package @modelcontextprotocol/conformance plays a client of revision 2026-07-28, and its older version a client of
2025-11-25. Every scenario runs. benchmarks/node/not_offered_*.yaml lists the checks of features that a tools-only
server does not offer, with reasons. Any other failure fails the benchmark, and so does a listed check that passes.
Without --url, the app's own function answers, on a fake workspace. The benchmark needs npm; with a Node.js before 22,
npm fetches a newer one.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks._mcp_server import served
from benchmarks._options import options

ROOT = Path(__file__).resolve().parent.parent
PINNED = ROOT / "benchmarks" / "node"
TOOLS = ROOT / ".trainyard" / "mcp-tools"
NODE = "node@22.23.3"  # the newer version of the package needs Node.js 22
SECONDS = 300  # for one version


class Revision(NamedTuple):
    name: str
    package: str

    @property
    def not_offered(self) -> Path:
        return PINNED / f"not_offered_{self.name.replace('-', '_')}.yaml"


REVISIONS = (Revision("2026-07-28", "@modelcontextprotocol/conformance"), Revision("2025-11-25", "conformance-2025"))


def install() -> None:
    """Install the pinned packages if they are missing."""
    lock = TOOLS / "package-lock.json"
    if lock.exists() and lock.read_bytes() == (PINNED / lock.name).read_bytes() and (TOOLS / "node_modules").exists():
        return
    TOOLS.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copyfile(PINNED / name, TOOLS / name)
    argv = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    subprocess.run(argv, cwd=TOOLS, check=True)


def node() -> list[str]:
    """Return the command of a Node.js that is new enough."""
    told = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout
    major = re.match(r"v(\d+)", told)
    return ["node"] if major and int(major[1]) >= 22 else ["npx", "--yes", "-p", NODE, "node"]


def measure(revision: Revision, url: str) -> dict[str, Any]:
    """Run every scenario. Return the number of checks by result; `unexpected` lists failures that are not in the
    list."""
    script = TOOLS / "node_modules" / revision.package / "dist" / "index.js"
    with tempfile.TemporaryDirectory() as folder:
        ran = subprocess.run(
            [
                *(*node(), str(script), "server", "--url", url, "--suite", "all", "--spec-version", revision.name),
                *("--expected-failures", str(revision.not_offered), "-o", folder),
            ],
            capture_output=True, text=True, timeout=SECONDS, check=False,
        )  # fmt: skip
        results = [json.loads(path.read_text("utf-8")) for path in sorted(Path(folder).glob("*/checks.json"))]
    statuses = Counter(check["status"] for checks in results for check in checks)
    unexpected = [] if ran.returncode == 0 else _unexpected(ran.stdout + ran.stderr)
    return {"scenarios": len(results), "passed": statuses["SUCCESS"], "unexpected": unexpected}


def _unexpected(text: str) -> list[str]:
    """Return the program's report about unexpected failures."""
    told = re.sub(r"\x1b\[[0-9;]*m", "", text).partition("Expected failures (in baseline):")[2]
    return [line.strip() for line in told.splitlines() if line.strip() and not line.strip().startswith("~")] or [told]


def main(argv: list[str]) -> None:
    parser = options(__doc__, "the newest revision alone")
    parser.add_argument("--url", default="", help="the address of /api/mcp of a running cloud without keys")
    asked = parser.parse_args(argv)
    install()
    with nullcontext(asked.url) if asked.url else served() as url:
        results = {each.name: measure(each, url) for each in (REVISIONS[:1] if asked.quick else REVISIONS)}
    if asked.json:
        print(json.dumps(results))
    else:
        for name, found in results.items():
            print(f"{name}: {found['scenarios']} scenarios, {found['passed']} checks passed")
            print("\n".join(f"  {line}" for line in found["unexpected"]) or "  nothing unexpected")
    if any(found["unexpected"] for found in results.values()):
        sys.exit(1)


if __name__ == "__main__":
    main(sys.argv[1:])

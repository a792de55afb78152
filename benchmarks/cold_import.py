"""Cold import of function_app, compiled: the import time of a cold start before the first function is indexed.

python3 trainyard.py bench cold_import [--quick] [--json]

The import of azure.functions alone, which every Python app pays, is measured too; target: at most 1.6 times that. The
two imports alternate, so that other load on the machine affects both.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks._options import options

ROOT = Path(__file__).resolve().parent.parent
RUNS, QUICK = 15, 3
PROBE = """
import json, sys, time
began = time.perf_counter()
import {module}
print(json.dumps({{"ms": 1000 * (time.perf_counter() - began), "ml": "azure.ai.ml" in sys.modules}}))
"""


def measure(module: str, bytecode: str) -> dict[str, Any]:
    argv = [sys.executable, "-c", PROBE.format(module=module)]
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": bytecode}
    told = subprocess.run(argv, cwd=ROOT, env=env, capture_output=True, check=True).stdout
    sample: dict[str, Any] = json.loads(told)
    return sample


def main(argv: list[str]) -> None:
    asked = options(__doc__, f"{QUICK} processes each").parse_args(argv)
    runs = QUICK if asked.quick else RUNS
    with tempfile.TemporaryDirectory() as bytecode:
        measure("function_app", bytecode)  # compiles
        pairs = [(measure("function_app", bytecode), measure("azure.functions", bytecode)) for _ in range(runs)]
    app_ms, peer_ms = [app["ms"] for app, _ in pairs], [peer["ms"] for _, peer in pairs]
    result = {
        "function_app_ms": round(statistics.median(app_ms), 1),
        "function_app_ms_max": round(max(app_ms), 1),
        "azure_functions_alone_ms": round(statistics.median(peer_ms), 1),
        "ratio": round(statistics.median(app_ms) / statistics.median(peer_ms), 2),
        "azure_ai_ml_imported": any(app["ml"] for app, _ in pairs),
    }
    if asked.json:
        print(json.dumps(result))
        return
    print(f"cold import, {runs} fresh processes each")
    for name, value in result.items():
        print(f"  {name:28} {value}")


if __name__ == "__main__":
    main(sys.argv[1:])

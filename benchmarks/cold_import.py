"""Cold import of function_app: what a cold start pays before the first function is indexed. Target: under 600 ms.

python -m benchmarks.cold_import [--json]
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RUNS = 15
PROBE = """
import json, sys, time
began = time.perf_counter()
import {module}
print(json.dumps({{"ms": 1000 * (time.perf_counter() - began), "ml": "azure.ai.ml" in sys.modules}}))
"""


def measure(module: str) -> list[dict[str, Any]]:
    argv = [sys.executable, "-c", PROBE.format(module=module)]
    return [json.loads(subprocess.run(argv, cwd=ROOT, capture_output=True, check=True).stdout) for _ in range(RUNS)]


def main(argv: list[str]) -> None:
    measure("json")  # warms the disk cache of the interpreter itself
    app, peer = measure("function_app"), measure("azure.functions")
    app_ms, peer_ms = ([sample["ms"] for sample in samples] for samples in (app, peer))
    result = {
        "function_app_ms": round(statistics.median(app_ms), 1),
        "function_app_ms_max": round(max(app_ms), 1),
        "azure_functions_alone_ms": round(statistics.median(peer_ms), 1),
        "azure_ai_ml_imported": any(sample["ml"] for sample in app),
    }
    if "--json" in argv:
        print(json.dumps(result))
        return
    print(f"cold import, {RUNS} fresh processes each")
    for name, value in result.items():
        print(f"  {name:28} {value}")


if __name__ == "__main__":
    main(sys.argv[1:])

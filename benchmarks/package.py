"""The deployed package: its size, and the cold import of its unpacked content, in a separate environment.

The environment has only requirements.txt, once with compiled modules and once without. The package is unpacked and
read-only, as Azure mounts it. Nothing is compiled during the measurement. The benchmark fails if the dependencies have
more than MOST_COMPILED bytes, because every starting instance fetches them.

python3 trainyard.py bench package [--quick] [--json]
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from benchmarks._options import options
from local import package

ROOT = Path(__file__).resolve().parent.parent
RUNS, QUICK = 9, 2
MOST_COMPILED = 120_000_000  # bytes of dependencies; tests/infra/test_package_size.py asks for the same
PROBE = """
import json, resource, time
began, cpu = time.perf_counter(), time.process_time()
import {module}
used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({{"ms": 1000 * (time.perf_counter() - began), "cpu": 1000 * (time.process_time() - cpu), "kB": used}}))
"""
MODULES = {name: name for name in ("function_app", "azure.ai.ml", "azure.monitor.opentelemetry")}


def environment(folder: Path, compiled: bool) -> Path:
    """Create a virtual environment with the pinned requirements, and return its interpreter."""
    python = folder / "bin" / "python"
    uv = [str(Path(sys.executable).with_name("uv"))]
    subprocess.run([*uv, "venv", "--quiet", "--python", sys.executable, str(folder)], check=True)
    extra = ["--compile-bytecode"] if compiled else []
    command = [*uv, "pip", "install", "--quiet", *extra, "--python", str(python), "-r", str(ROOT / "requirements.txt")]
    subprocess.run(command, check=True)
    return python


def unpack(archive: Path, folder: Path, python: Path, compiled: bool) -> None:
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(folder)
    if compiled:
        subprocess.run(
            [python, "-m", "compileall", "-q", str(folder / "shared"), str(folder / "functions")], check=True
        )
    for file in folder.rglob("*"):
        file.chmod(0o555 if file.is_dir() else 0o444)


def measure(python: Path, folder: Path, module: str, runs: int) -> dict[str, Any]:
    """Return medians over fresh processes."""
    env = {"PATH": "", "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(folder), "HOME": os.environ.get("HOME", "/")}
    argv = [str(python), "-P", "-s", "-c", PROBE.format(module=module)]
    told = [subprocess.run(argv, cwd="/", env=env, capture_output=True, check=True).stdout for _ in range(runs + 1)]
    samples = [json.loads(text) for text in told[1:]]  # the first sample fills the disk cache
    return {key: round(statistics.median(sample[key] for sample in samples)) for key in samples[0]}


def size_of(folder: Path) -> tuple[int, int]:
    files = [file for file in folder.rglob("*") if file.is_file() and not file.is_symlink()]
    return len(files), sum(file.stat().st_size for file in files)


def main(argv: list[str]) -> int:
    asked = options(__doc__, f"{QUICK} processes each, compiled alone").parse_args(argv)
    runs = QUICK if asked.quick else RUNS
    with tempfile.TemporaryDirectory() as scratch:
        built = package.build(Path(scratch, "dist"))
        result: dict[str, Any] = {
            "package": {"files": built.files, "bytes": built.unpacked_bytes, "zipped": built.zipped_bytes}
        }
        for compiled in (True,) if asked.quick else (False, True):
            home = Path(scratch, "compiled" if compiled else "plain")
            python = environment(home / "venv", compiled)
            unpack(built.archive, home / "app", python, compiled)
            files, size = size_of(home / "venv" / "lib")
            one: dict[str, Any] = {"dependencies": {"files": files, "bytes": size}}
            one |= {name: measure(python, home / "app", module, runs) for name, module in MODULES.items()}
            result["compiled" if compiled else "not compiled"] = one
    if asked.json:
        print(json.dumps(result))
    else:
        for name, part in result.items():
            print(f"{name}\n" + "\n".join(f"  {key:14} {value}" for key, value in part.items()))
    return int(result["compiled"]["dependencies"]["bytes"] > MOST_COMPILED)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

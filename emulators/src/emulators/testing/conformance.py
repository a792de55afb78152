"""Compare an app on the host's own backend with the app on Microsoft's azure-functions-runtime (Python 3.13).

outcomes = run(sys.executable, app, "direct", [{"function": "echo", "inputs": http()}], folder)
assert run(str(installed(python313.find(), venv)), app, "runtime", ..., folder) == outcomes
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from emulators.process import IS_WINDOWS

HERE = Path(__file__).parent
SOURCE = HERE.parents[1]  # the folder with the package `emulators`
PACKAGES = (  # the runtime, and those of the emulators' requirements that the host needs
    *("azure-functions-runtime==1.3.*", "azure-functions>=1.26", "aiohttp>=3.14", "certifi", "trustme>=1.2"),
    *("azure-storage-blob>=12.20", "azure-storage-queue>=12.10"),
)
INSTALL_SECONDS = 600


def installed(python: str, venv: Path, requirements: Path | None = None) -> Path:
    """Return the interpreter of an environment with the runtime and the app's requirements. The environment is
    created again when these change."""
    asked = (requirements.read_bytes() if requirements else b"") + repr(PACKAGES).encode()
    wanted = hashlib.sha256(asked).hexdigest()
    interpreter, stamp = venv / ("Scripts" if IS_WINDOWS else "bin") / "python", venv / "installed"
    if stamp.exists() and stamp.read_text() == wanted:
        return interpreter
    packages = [*(("-r", str(requirements)) if requirements else ()), *PACKAGES]
    if uv := shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"):
        _command([uv, "venv", "--quiet", "--clear", "--python", python, str(venv)])
        _command([uv, "pip", "install", "--quiet", "--python", str(interpreter), *packages])
    else:
        _command([python, "-m", "venv", "--clear", str(venv)])
        _command([str(interpreter), "-m", "pip", "install", "--quiet", *packages])
    stamp.write_text(wanted)
    return interpreter


def _command(argv: list[str]) -> None:
    done = subprocess.run(argv, capture_output=True, text=True, timeout=INSTALL_SECONDS)
    assert done.returncode == 0, f"{' '.join(argv)}\n{done.stdout}{done.stderr}"


def run(
    python: str, app: Path, backend: str, table: list[dict[str, Any]], folder: Path, path: Sequence[Path] = ()
) -> dict[str, Any]:
    """Return the index, the outcome of each row of the table, and the records of the functions in $SAMPLE_RECORD.

    `path` holds further folders that the app imports from.
    """
    record, file = folder / f"{backend}.jsonl", folder / "table.json"
    record.touch()
    file.write_text(json.dumps(table))
    places = os.pathsep.join([str(SOURCE), *map(str, path)])
    # The runtime reads a cookie's expiry, which is GMT, as local time.
    env = {**os.environ, "TZ": "UTC", "PYTHONPATH": places, "SAMPLE_RECORD": str(record)}
    argv = [python, str(HERE / "conformance_run.py"), str(app), backend, str(file)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, env=env)
    assert done.returncode == 0, done.stderr
    # The runtime's library may log on standard output, so the result is the JSON object at its end.
    return {**json.loads(done.stdout[done.stdout.index("{\n") :]), "records": record.read_text().splitlines()}


def http(**content: Any) -> dict[str, Any]:
    """Return the input of an HTTP function."""
    return {"req": {"kind": "http", "content": {"method": "GET", "url": "http://h/api/x", **content}}}


def one(name: str, kind: str, content: Any) -> dict[str, Any]:
    """Return a single input, in the host's form."""
    return {name: {"kind": kind, "content": content}}

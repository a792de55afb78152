"""Runs the notebook of examples/ on an archive folder, without a cloud, the command line or any service."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from azure.storage.blob import ContainerClient

from tests.e2e.desk import ROOT
from tests.e2e.lab import Lab

NOTEBOOK = ROOT / "examples" / "look_at_model.ipynb"


def cells() -> list[str]:
    """The code of the notebook. The second cell, which is the first with code, has its parameters."""
    found = json.loads(NOTEBOOK.read_text("utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in found if cell["cell_type"] == "code"]


def look(archive: Path, files: list[Path]) -> str:
    """The notebook's output for this archive, from a process that has no access to Trainyard."""
    parameters = f"ARCHIVE = {str(archive)!r}\nFILES = {[str(file) for file in files]!r}"
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TRAINYARD", "AZURE", "AML"))}
    done = subprocess.run(
        [sys.executable, "-c", "\n\n".join([parameters, *cells()[1:]])],
        cwd=ROOT / "examples",
        env={**kept, "MPLBACKEND": "Agg", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        encoding="utf-8",
        timeout=200,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def fetched(lab: Lab, run: dict[str, object], folder: Path) -> Path:
    """The run's whole archive in a folder."""
    container, _, prefix = str(run["output"]).partition("/")
    with ContainerClient.from_connection_string(lab.cloud.connection_string, container) as output:
        for name in lab.output(run):
            file = folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(output.download_blob(f"{prefix}/{name}").readall())
    return folder

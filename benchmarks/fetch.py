"""Fetching a run of many files: the `fetch` command, which checks each file against the manifest, and other ways.

    python3 trainyard.py bench fetch [--quick] [--json]

The other ways read the storage account directly, without any check: a plain loop with the SDK, and azcopy if it is on
the PATH.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from azure.storage.blob import ContainerClient, ContainerSasPermissions, generate_container_sas

from benchmarks._options import options
from local.cloud import Cloud, Options

FILES, QUICK, BYTES = 1000, 50, 2000
CODE = (
    "import os, pathlib, sys; folder = pathlib.Path(sys.argv[1]); folder.mkdir(parents=True, exist_ok=True); "
    f"[(folder / f'{{i:04}}.bin').write_bytes(os.urandom({BYTES})) for i in range(int(sys.argv[2]))]"
)
JOB = {
    "command": f'python -c "{CODE}" ${{{{outputs.models}}}}',
    "environment": "azureml:trainyard@latest",
    "compute": "azureml:cpu-cluster",
    "experiment_name": "fetch",
    "outputs": {"models": {"type": "uri_folder"}},
}


def trainyard(cloud: Cloud, *argv: str) -> Any:
    env = {**os.environ, "TRAINYARD_CLOUD": str(cloud.home)}
    command = [sys.executable, "-m", "cli", *argv, "--json"]
    return json.loads(subprocess.run(command, env=env, check=True, stdout=subprocess.PIPE).stdout)


def plain_loop(cloud: Cloud, folder: str, to: Path) -> None:
    """Download one blob after another, as a five-line script does."""
    with ContainerClient.from_connection_string(cloud.connection_string, "output") as output:
        for name in output.list_blob_names(name_starts_with=f"{folder}/models/"):
            target = to / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(output.download_blob(name).readall())


def azcopy(cloud: Cloud, folder: str, to: Path) -> None:
    with ContainerClient.from_connection_string(cloud.connection_string, "output") as output:
        sas = generate_container_sas(
            "devstoreaccount1",
            "output",
            account_key=output.credential.account_key,
            permission=ContainerSasPermissions(read=True, list=True),
            expiry=datetime.now(UTC) + timedelta(hours=1),
        )
        source = f"{output.url}/{folder}/models?{sas}"
    argv = ["azcopy", "copy", source, str(to), "--recursive", "--from-to", "BlobLocal"]
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)


def seconds(call: Callable[[Path], object], files: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        call(Path(folder))
        taken = time.perf_counter() - began
        found = sum(1 for path in Path(folder).rglob("*.bin"))
    assert found == files, f"{found} files came instead of {files}"
    return taken


def main(argv: list[str]) -> int:
    asked = options(__doc__, f"{QUICK} files").parse_args(argv)
    files = QUICK if asked.quick else FILES
    with (
        tempfile.TemporaryDirectory() as home,
        Cloud.start(Path(home) / "cloud", Options(node_start_seconds=0)) as cloud,
    ):
        file = Path(home) / "job.json"
        file.write_text(json.dumps({**JOB, "command": f"{JOB['command']} {files}"}))
        run = trainyard(cloud, "submit", "--job", str(file), "--follow")
        folder = run["output"].partition("/")[2]
        ways: dict[str, Callable[[Path], object]] = {
            "trainyard fetch": lambda to: trainyard(cloud, "fetch", run["run"], "--only", "models", "--to", str(to)),
            "a plain loop of the SDK": lambda to: plain_loop(cloud, folder, to),
        }
        if shutil.which("azcopy"):
            ways["azcopy"] = lambda to: azcopy(cloud, folder, to)
        taken = {name: seconds(way, files) for name, way in ways.items()}
    if asked.json:
        print(json.dumps(taken))
    else:
        for name, spent in taken.items():
            print(f"{name:24} {spent:6.1f} s  {files / spent:6.0f} files/s")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""A person at a terminal, with a cloud."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from local.cloud import Cloud
from tests.e2e import typist

ROOT = Path(__file__).resolve().parents[2]


def one_node_each(folder: Path) -> Path:
    """Trainyard's own routes in a file of this folder, with one node per run where two would test nothing more."""
    file = folder / "routes.yaml"
    file.write_text((ROOT / "routes.yaml").read_text("utf-8").replace("nodes: 2", "nodes: 1"), "utf-8")
    return file


@dataclass
class Desk:
    """A person at a terminal, with a cloud and a folder of their own."""

    cloud: Cloud
    folder: Path

    @property
    def env(self) -> dict[str, str]:
        own = {"TRAINYARD_CLOUD": str(self.cloud.home), "TRAINYARD_CONFIG": str(self.folder / "config")}
        kept = {name: value for name, value in os.environ.items() if not name.startswith("TRAINYARD_")}
        return {
            **kept,
            **own,
            "TRAINYARD_CWD": str(self.folder),
            "NO_PROXY": "127.0.0.1",
            "PYTHONUTF8": "1",
            "COLUMNS": "200",
        }

    def type(self, *argv: str, expect: int = 0) -> subprocess.CompletedProcess[str]:
        """Run a command and check its exit status."""
        done = typist.run(argv, self.env)
        assert done.returncode == expect, done.stdout + done.stderr
        return done

    def ask(self, *argv: str, expect: int = 0) -> Any:
        return json.loads(self.type(*argv, "--json", expect=expect).stdout)

    def runs(self) -> list[str]:
        """The names of all runs, from the API itself."""
        return [row["run"] for row in httpx.get(f"{self.cloud.api}/runs", timeout=30).json()["runs"]]

    def job(self, name: str, code: str) -> str:
        """The path of a job file that runs this Python code on one node."""
        job = {
            "command": f'python -c "{code}"',
            "environment": "azureml:trainyard@latest",
            "compute": "azureml:cpu-cluster",
            "experiment_name": "talk",
        }
        (self.folder / name).write_text(json.dumps(job), "utf-8")
        return name

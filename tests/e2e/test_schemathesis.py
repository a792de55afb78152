"""Schemathesis against the app on the real local host: requests that the OpenAPI document allows, and others."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from azure.storage.blob import ContainerClient

from emulators.process import wait_for
from local.cloud import Cloud, Options

ROUTES = "routes: {noop: {template: noop.yaml, cluster: cpu-cluster, quiet_seconds: 3600}}\n"
TEMPLATE = """
command: python -c "print('done')"
environment: azureml:trainyard@latest
inputs: {data: {type: uri_folder, path: azureml://datastores/drops/paths/x/}, epochs: 1}
outputs: {models: {type: uri_folder}}
"""
# A request that fits its model may still name what isn't there: 422. A job, which is any object, may hold what no table
# can keep, such as a NUL or a number of 70 bits: 422 too. The local host asks for no keys, and answers 404
# to a method that a route doesn't take, as Azure's does. Both are held by tests of their own.
CONFIG = """
hooks = "hooks"
[checks]
ignored_auth.enabled = false
unsupported_method.enabled = false
positive_data_acceptance.expected-statuses = ["2xx", "3xx", 404, 409, 416, 422]
"""
# Like Azure's, the host omits empty query values, so the app never sees them; a space is the closest value.
HOOKS = """
import schemathesis


@schemathesis.hook
def before_call(context, case, kwargs):
    case.query = {name: " " if value in ("", [""]) else value for name, value in (case.query or {}).items()}
"""


@dataclass(frozen=True)
class Lab:
    cloud: Cloud
    run: str  # archived

    def schemathesis(self, home: Path, config: str, *argv: str) -> subprocess.CompletedProcess[str]:
        (home / "schemathesis.toml").write_text(config)
        (home / "hooks.py").write_text(HOOKS)
        command = [sys.executable, "-m", "schemathesis.cli", "run", f"{self.cloud.api}/openapi.json", "--no-color"]
        # One worker: CPython 3.11's ast.parse fails at times when two threads of it recurse.
        command += ["--url", self.cloud.api, "--workers", "1", "--phases", "coverage,fuzzing", "--seed", "1", *argv]
        return subprocess.run(command, cwd=home, capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    home = tmp_path_factory.mktemp("schemathesis")
    (home / "routes.yaml").write_text(ROUTES)
    (home / "noop.yaml").write_text(TEMPLATE)
    with Cloud.start(home / "cloud", Options(routes=home / "routes.yaml", node_start_seconds=0.1)) as cloud:
        with ContainerClient.from_connection_string(cloud.connection_string, "drops") as drops:
            drops.upload_blob("shelf/a/1.bin", b"x")
        body = {"template": "noop", "data": "drops/shelf/a"}
        run = httpx.post(f"{cloud.api}/runs", json=body).raise_for_status().json()["run"]
        wait_for(lambda: httpx.get(f"{cloud.api}/runs/{run}").json()["archived_at"], 60, "the run to be archived")
        yield Lab(cloud, run)


def test_schemathesis_finds_no_fault(lab: Lab, tmp_path: Path) -> None:
    """For any request, answers fit their schemas, invalid input is refused, valid input is accepted, and none is a
    500."""
    done = lab.schemathesis(tmp_path, CONFIG, "--max-examples", "6")
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


def test_schemathesis_finds_no_fault_with_a_real_run(lab: Lab, tmp_path: Path) -> None:
    """The same holds for every request about an archived run and an existing cluster."""
    known = f'[parameters]\n"path.run" = "{lab.run}"\n"path.cluster" = "cpu-cluster"\n'
    done = lab.schemathesis(tmp_path, CONFIG + known, "--max-examples", "6", "--include-path-regex", "(run|cluster)}")
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]

"""The app under another host than ours: TRAINYARD_FUNCTIONS_HOST."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from azure.storage.blob import ContainerClient

from benchmarks.scaling.cloud import Plan, running
from emulators.process import wait_for
from emulators.testing import other_host
from local import package
from shared.runs.ports import RunFilter

OTHER_HOST = os.environ.get("TRAINYARD_FUNCTIONS_HOST", "")
PATIENCE = 180.0
HTTP_ALONE = {"WEBSITE_SKU": "FlexConsumption", "FUNCTIONS_TARGET_GROUP": "http"}  # so that our host handles no message


@pytest.mark.skipif(not OTHER_HOST, reason="TRAINYARD_FUNCTIONS_HOST names no other host")
def test_a_drop_becomes_an_archive_under_another_host(tmp_path: Path) -> None:
    """With the deployed package, an upload to Azurite becomes one job, and the job's end an archive."""
    app = package.build(tmp_path / "package").folder
    plan = Plan({"queued_seconds": 0.0, "running_seconds": 1.0}, azurite=True, app_env=HTTP_ALONE)
    with running(tmp_path / "yard", plan) as cloud:
        env = {name: value for name, value in cloud._parts["host"].env.items() if name not in HTTP_ALONE}
        host = other_host.start(OTHER_HOST, app, tmp_path / "host.log", env)
        try:
            with ContainerClient.from_connection_string(cloud.connection_string, "drops") as drops:
                for name in ("1.bin", "_SUCCESS"):
                    drops.upload_blob(f"noop/first/{name}", b"")
            runs = cloud.system().runs
            wait_for(
                lambda: any(run.archive.at for run in runs.page(RunFilter(), 10).runs), PATIENCE, "the archive", 0.5
            )
            (run,) = runs.page(RunFilter(), 10).runs
            assert run.asked.drop == "noop/first"
        finally:
            host.stop()

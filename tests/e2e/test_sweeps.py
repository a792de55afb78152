"""Clusters on the local cloud: leases, unexplained nodes, refusals, hanging jobs, and why a run waits.

Sweeps that need hours to pass are made here, against the same storage and the same Azure ML, with a clock that is
ahead. The app itself checks a cluster when a run or a lease on the cluster begins or ends.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import httpx
import pytest

from emulators.process import wait_for
from local.cloud import Cloud, Options
from shared import wiring
from shared.clusters.scaling import scale_clusters
from shared.kernel.clock import SystemClock
from shared.kernel.settings import Settings
from shared.system import System
from tests.e2e.desk import Desk
from tests.fakes.storage import OtherClock

FILE = """
clusters:
  cpu-cluster: {size: Standard_D2s_v3, max: 4, idle: 60}
  spare: {size: Standard_D2s_v3, max: 2, idle: 60, tier: dedicated}
  stuck: {size: Standard_D2s_v3, max: 2, idle: 60, tier: dedicated, project: research}
"""
TALK = "import time; time.sleep(600)"
PATIENCE = 60.0
LEAP_DAYS = "0 0 0 29 2 *"  # the app runs no sweep by itself


@dataclass
class Office(Desk):
    """An administrator's desk, with access to the workspace and a clock that can be ahead."""

    system: System | None = None

    def azure(self, method: str, path: str, body: dict[str, Any]) -> None:
        """Make a request to the workspace as its administrator, or to the local Azure ML itself (/control/...)."""
        below = path if path.startswith("/") else f"{self.cloud.record.workspace_id}/{path}?api-version=2024-04-01"
        import ssl

        context = ssl.create_default_context(cafile=str(self.cloud.certs))
        headers = {"Authorization": "Bearer administrator"}
        httpx.request(method, f"{self.cloud.azureml}{below}", json=body, headers=headers, verify=context, timeout=30)

    def forget(self, cluster: str) -> None:
        """Leave a cluster at a minimum of 1, as someone might in the studio."""
        scale = {"minNodeCount": 1, "maxNodeCount": 2, "nodeIdleTimeBeforeScaleDown": "PT60S"}
        self.azure("PATCH", f"computes/{cluster}", {"properties": {"properties": {"scaleSettings": scale}}})

    def sweep_in(self, minutes: float) -> None:
        """Run the sweep as it will be at a later time."""
        assert self.system is not None
        scale_clusters(replace(self.system, clock=OtherClock(SystemClock(), minutes * 60)))

    def cluster(self, name: str) -> dict[str, Any]:
        return next(c for c in self.get("clusters") if c["name"] == name)

    def get(self, path: str) -> Any:
        return httpx.get(f"{self.cloud.api}/{path}", timeout=30).json()

    def until(self, look: Callable[[], Any], what: str) -> Any:
        return wait_for(look, PATIENCE, what, 0.5)


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    folder, before = tmp_path_factory.mktemp("office"), dict(os.environ)
    (folder / "clusters.yaml").write_text(FILE)
    options = Options(node_start_seconds=0.5, app_env={"TRAINYARD_SCALING_SCHEDULE": LEAP_DAYS})
    with Cloud.start(folder / "cloud", options) as cloud:
        env = cloud._parts["host"].env
        os.environ.update(env)  # the credential and certificates with which this process reaches Azure ML
        yield Office(cloud, folder, wiring.build(Settings.from_env(env)))
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture(scope="module", autouse=True)
def _applied(office: Office) -> None:
    steps = {step["cluster"]: step["action"] for step in office.ask("clusters", "apply")["steps"]}
    assert steps == {"cpu-cluster": "change", "spare": "create", "stuck": "create"}


def test_the_file_is_made_true_once(office: Office) -> None:
    """After `apply` the plan is empty; a change in the workspace shows as a difference, and an invalid file is
    refused."""
    assert office.ask("clusters", "plan") == {"steps": [], "not_in_the_file": []}
    office.forget("spare")
    (step,) = office.ask("clusters", "plan")["steps"]
    assert step["changes"] == {"min": {"from": 1, "to": 0}}
    (office.folder / "wrong.yaml").write_text("clusters: {spare: {size: Standard_D2s_v3, max: 1, min: 1}}")
    assert "Give the reason in `pin`" in office.type("clusters", "plan", "--file", "wrong.yaml", expect=1).stderr


def test_a_lease_keeps_nodes_and_its_end_takes_them(office: Office) -> None:
    """A leased node starts without a run and stays, with its owner's reason; it is removed when the lease ends."""
    made = office.ask("lease", "cpu-cluster", "--for", "2m", "--why", "tuning lr")
    held = office.until(
        lambda: (c := office.cluster("cpu-cluster"))["nodes"] == 1 and c["decision"] and c, "the leased node"
    )
    assert (held["min_nodes"], held["decision"]["code"]) == (1, "leased")
    assert "(tuning lr)" in office.type("clusters").stdout.replace("\n", " ")
    assert [row["lease"] for row in office.ask("leases")] == [made["lease"]]
    office.sweep_in(1)
    assert office.cluster("cpu-cluster")["min_nodes"] == 1
    office.sweep_in(5)
    assert office.cluster("cpu-cluster")["min_nodes"] == 0
    assert office.cluster("cpu-cluster")["decision"]["code"] == "idle"


def test_a_forgotten_minimum_is_found_and_what_refuses_stops_no_other(office: Office) -> None:
    """An unexplained minimum is reported, and removed after its idle time. A cluster that answers 403 is recorded
    as broken with Azure's words while the others scale to zero; once it answers, it scales to zero too."""
    for name in ("spare", "stuck"):
        office.forget(name)
    office.until(lambda: [office.cluster(name)["idle_nodes"] for name in ("spare", "stuck")] == [1, 1], "their nodes")
    office.sweep_in(0)
    assert office.cluster("spare")["decision"]["findings"] == [
        "Its minimum is 1; no lease and no pin explains it; it is removed when no job runs."
    ]
    fault = {"method": "PATCH", "path": "computes/stuck", "status": 403, "code": "AuthorizationFailed"}
    office.azure("PUT", "/control/faults", {"requests": [{**fault, "message": "No right to do that."}]})
    office.sweep_in(20)
    assert (office.cluster("spare")["min_nodes"], office.cluster("stuck")["min_nodes"]) == (0, 1)
    broken = office.cluster("stuck")["decision"]
    assert (broken["action"], broken["code"]) == ("wait", "broken")
    assert "403 AuthorizationFailed No right to do that." in broken["why"]
    office.azure("PUT", "/control/faults", {})
    office.sweep_in(30)
    assert office.cluster("stuck")["min_nodes"] == 0
    codes = [row["code"] for row in office.ask("clusters", "--history", "stuck")]
    assert codes[:2] == ["idle", "broken"]


def test_a_run_that_hangs_is_canceled_at_its_limit(office: Office) -> None:
    """The sweep cancels a job that runs past its limit, and the run shows the reason."""
    run = office.ask("submit", "--job", office.job("talk.json", TALK), "--timeout", "10m")["run"]
    office.until(lambda: office.get(f"runs/{run}")["state"] == "running", f"run {run} to run")
    office.sweep_in(14)
    assert office.get(f"runs/{run}")["cancel_asked_at"] is None
    office.sweep_in(16)
    found = office.until(lambda: (r := office.get(f"runs/{run}"))["state"] == "canceled" and r, f"the end of {run}")
    assert found["reason"].endswith("past its time limit of 600 s.")


def test_a_quota_is_readable_on_the_run(office: Office) -> None:
    """A run that waits for a quota shows which quota, its usage, and Azure's own words; so does a dry run."""
    office.azure("PUT", "/control/faults", {"quotas": {"lowPriorityCores": 2}})
    submit = ("submit", "--job", office.job("talk.json", TALK), "--nodes", "4")
    run = office.ask(*submit)["run"]
    try:
        waits = office.until(
            lambda: (w := office.get(f"runs/{run}")["waiting"]) and w["code"] == "quota" and w, "the quota's words"
        )
        assert (waits["family"], waits["limit"]) == ("lowPriorityCores", 2)
        assert waits["words"].startswith("QuotaExceeded: Operation could not be completed")
        assert "The quota of lowPriorityCores is reached, 2 of 2 cores are in use." in office.type("runs").stdout
        assert "Current Limit: 2" in " ".join(office.type("show", run).stdout.split())
        assert [r["code"] for r in office.ask(*submit, "--dry-run", expect=1)["reasons"]] == ["quota"]
    finally:
        office.type("cancel", run)
        office.azure("PUT", "/control/faults", {})

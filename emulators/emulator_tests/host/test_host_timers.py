"""The timer trigger with Azurite: status blob, past due, lease, retry."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from azure.core.exceptions import ResourceNotFoundError
from azure.storage.blob import BlobClient, BlobLeaseClient

from emulator_tests.host.conftest import SampleHost, StartHost
from emulators.host.worker.backend import RetryPolicy
from emulators.host.worker.invoker import retry_delay
from emulators.process import wait_for
from emulators.testing import azurite

EVERY_SECOND = {"SAMPLE_SCHEDULE": "* * * * * *"}
EVERY_HOUR = {"SAMPLE_SCHEDULE": "0 0 * * * *"}


def blob(storage: azurite.Azurite, host: SampleHost, kind: str) -> BlobClient:
    name = {"status": f"timers/{host.queue}/Host.Functions.tick/status"}.get(
        kind, f"locks/{host.queue}/Host.Functions.tick.Listener"
    )
    return BlobClient.from_connection_string(storage.connection_string, "azure-webjobs-hosts", name)


def status(storage: azurite.Azurite, host: SampleHost) -> dict[str, str] | None:
    with blob(storage, host, "status") as client:
        try:
            told: dict[str, str] = json.loads(client.download_blob().readall())
            return told
        except ResourceNotFoundError:
            return None


def test_a_timer_fires_and_a_stop_gives_up_its_lease(start_host: StartHost, storage: azurite.Azurite) -> None:
    """A schedule of every second fires every second and keeps no status. A stop releases the lease."""
    host = start_host(EVERY_SECOND)
    first, *_ = host.wait_for_records("tick", 2)
    assert (first["past_due"], first["status"], first["schedule"]) == (False, {}, {"AdjustForDST": True})
    assert status(storage, host) is None
    assert host.part.stop() == 0
    with blob(storage, host, "lock") as client:
        lease = BlobLeaseClient(client)
        lease.acquire(15)
        lease.release()


def test_a_missed_firing_runs_at_start(start_host: StartHost, storage: azurite.Azurite) -> None:
    """A new timer saves its next firing. If the host is stopped at that time, the timer runs at the next start,
    past due, and is scheduled again."""
    first = start_host(EVERY_HOUR)
    saved = wait_for(lambda: status(storage, first), 60, "the status")
    assert saved["Last"].startswith("0001-01-01T00:00:00")
    assert datetime.fromisoformat(saved["Next"]) > datetime.now(UTC)
    first.part.stop()
    assert first.records("tick") == []
    earlier = ("2026-01-01T09:00:00+00:00", "2026-01-01T10:00:00+00:00", "2026-01-01T09:00:00+00:00")
    missed = dict(zip(("Last", "Next", "LastUpdated"), earlier, strict=True))
    with blob(storage, first, "status") as client:
        client.upload_blob(json.dumps(missed), overwrite=True)
    second = start_host(EVERY_HOUR, like=first)
    (seen,) = second.wait_for_records("tick", 1)
    assert (seen["past_due"], seen["status"]) == (True, missed)
    wait_for(lambda: (status(storage, first) or missed)["Last"] > "2026-01-02", 60, "the new status")


def test_one_host_at_a_time_has_the_timer(start_host: StartHost, storage: azurite.Azurite) -> None:
    """Of two hosts with one host_id, the second gets the lease when the first stops."""
    first = start_host(EVERY_SECOND)
    first.wait_for_records("tick", 1)
    second = start_host(EVERY_SECOND, host_id=first.queue)
    first.wait_for_records("tick", len(first.records("tick")) + 3)
    assert second.records("tick") == []
    assert first.part.stop() == 0
    second.wait_for_records("tick", 1)


def test_a_failed_timer_is_retried_as_declared(start_host: StartHost) -> None:
    """The retries of the policy follow at once, each with a count. Then the schedule continues."""
    host = start_host({**EVERY_HOUR, "SAMPLE_TIMER_FAILURES": "2"})
    assert host.call("/admin/functions/tick", "POST", json={}).status_code == 202
    seen = host.wait_for_records("tick", 3)
    assert [(entry["retry"], entry["max"]) for entry in seen] == [(0, 2), (1, 2), (2, 2)]


@pytest.mark.parametrize(
    ("attempt", "low", "high"), [(1, 2, 2), (2, 1.6, 2.4), (3, 3.2, 4.8), (9, 30, 30), (2000, 30, 30)]
)
def test_exponential_retries_double_to_their_maximum(attempt: int, low: float, high: float) -> None:
    """The first retry waits for the minimum. Retry n waits for the minimum plus about 2^(n-2) minimums (within a
    fifth), up to the maximum."""
    policy = RetryPolicy("exponential_backoff", -1, minimum=2, maximum=30)
    base = 0 if attempt == 1 or attempt > 8 else policy.minimum
    assert low + base <= retry_delay(policy, attempt) <= high + base

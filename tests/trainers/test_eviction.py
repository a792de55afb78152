"""The announced eviction of a node: which processes poll, which node is meant, and what the training does."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from elastic import eviction
from elastic.eviction import EvictionWatch, endpoint
from labelled import Batch, Images
from mnist import train

from emulators.process import wait_for
from tests.trainers import metadata_service
from tests.trainers.metadata_service import NAME, Service

PATIENCE = 60.0


@pytest.fixture
def service() -> Iterator[Service]:
    with metadata_service.running() as running:
        yield running


@pytest.mark.parametrize(
    ("environ", "address"),
    [
        ({}, None),
        ({"AZ_BATCH_NODE_ID": "tvmps_0123_d"}, None),
        ({"AZ_BATCH_NODE_ID": "tvmps_0123_p"}, "http://169.254.169.254"),
        ({"AZ_BATCH_NODE_ID": "tvmps_0123_p", "NODE_METADATA_ENDPOINT": "off"}, None),
        ({"NODE_METADATA_ENDPOINT": "https://127.0.0.1:1/nodes/x/"}, "https://127.0.0.1:1/nodes/x"),
        ({"NODE_METADATA_ENDPOINT": "file:///etc/passwd"}, None),
    ],
)
def test_only_low_priority_nodes_ask(environ: dict[str, str], address: str | None) -> None:
    """Only a process on a low-priority node, or with a configured address, polls; and only over HTTP."""
    assert endpoint(environ) == address


def test_only_the_node_that_is_meant_is_told(service: Service) -> None:
    """Every machine of a scale set sees all events; only this node's own eviction calls back, once."""
    service.announce("aks-pool_1")
    service.announce(NAME, kind="Freeze")
    called: list[int] = []
    watch = EvictionWatch(service.url, lambda: called.append(1))
    wait_for(lambda: service.asked.count("/metadata/scheduledevents") >= 2, PATIENCE, "two questions")
    assert not watch.seen.is_set()
    service.announce(NAME.upper(), "aks-pool_3")
    assert watch.seen.wait(PATIENCE)
    wait_for(lambda: not _watchers(), PATIENCE, "the questions to end")
    assert called == [1]
    assert not service.refused, "every request has the header and a version"
    assert service.asked.count("/metadata/instance/compute/name") == 1


def test_where_nothing_answers_it_ends_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a metadata service no process waits, and the polling ends."""
    monkeypatch.setattr(eviction, "TRIES_BEFORE_AN_ANSWER", 2)
    monkeypatch.setattr(eviction, "PAUSE_SECONDS", 0.01)
    watch = EvictionWatch("http://127.0.0.1:9", lambda: pytest.fail("nobody said so"))
    wait_for(lambda: not _watchers(), PATIENCE, "the questions to end")
    assert not watch.seen.is_set()


def test_a_training_saves_when_its_node_is_to_go_and_goes_on(
    service: Service,
    alone: None,
    digits_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """After an announcement in the middle of an epoch, a checkpoint is made at once, and the training ends as
    usual."""
    monkeypatch.setenv("NODE_METADATA_ENDPOINT", service.url)
    batches = train.batches

    def announced_at_the_fifth(t: train.Training, images: Images) -> Iterator[Batch]:
        for number, batch in enumerate(batches(t, images), 1):
            if number == 5:
                service.announce(NAME)
                wait_for(lambda: not _watchers(), PATIENCE, "the announcement to be heard")
            yield batch

    monkeypatch.setattr(train, "batches", announced_at_the_fifth)
    args = ["--data", digits_folder, "--epochs", 1, "--checkpoint-dir", tmp_path]
    assert train.main([str(arg) for arg in args]) == 0
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == ["000001-step-5", "000002-step-23"]
    assert "rank 0: Azure takes this node away soon; a checkpoint is due at step 4" in capfd.readouterr().out


def _watchers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "eviction"]

"""Agents whose workers outlive the rounds: no death costs a step, and each costs only seconds."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from emulators.process import tail, wait_for
from emulators.testing import azurite
from tests.elastic import hosts
from tests.elastic.agents import CONF, DEADLINE_SECONDS, ROOT, InPlace
from tests.trainers import cifar, metadata_service
from trainers.elastic.backend import AzureTableRendezvousBackend
from trainers.elastic.client import connect
from trainers.elastic.protocol import Round

IMPATIENT = "last_call_timeout=2,keep_alive_interval=1,heartbeat_timeout=1"  # silence of 2 s is noticed


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[azurite.Azurite]:
    with azurite.start(tmp_path_factory.mktemp("azurite"), key=azurite.KEY, names=[hosts.GATEWAY]) as running:
        yield running


def test_the_first_and_the_last_are_killed(account: azurite.Azurite, tmp_path: Path) -> None:
    """Of four nodes, the first is killed, then the last that came. The others keep their processes and every step.
    A later node joins with the state from the others' memory, and all end with 0."""
    with InPlace(tmp_path, account.table_url, "in-place", "1:4") as run:
        run.start(4)
        before = run.wait_for_steps(4, steps=5)
        run.first().kill()
        lines = run.wait_for_steps(3, after=len(before), steps=3)
        run.alive()[-1].kill()
        lines = run.wait_for_steps(2, after=len(lines), steps=3)
        run.start(1)
        run.wait_for_steps(3, after=len(lines), steps=3)
        assert run.finish() == [0, 0, 0]
        run.assert_no_step_lost()


def test_one_that_is_told_leaves_before_it_dies(account: azurite.Azurite, tmp_path: Path) -> None:
    """The first of three nodes gets SIGTERM, and another one Azure's notice of an eviction. Each leaves after a
    step that all nodes made, and the others continue. The first ends with 143 at once, the other only when its
    node is taken, because Azure ML starts such a job again."""
    with metadata_service.running() as service, InPlace(tmp_path, account.table_url, "told", "1:3") as run:
        run.start(2)
        announced = run.start(1, NODE_METADATA_ENDPOINT=service.url)[0]
        before = run.wait_for_steps(3, steps=5)
        leaver = next(agent for agent in run.alive() if agent is not announced)
        leaver.process.terminate()
        before = run.wait_for_steps(2, after=len(before), steps=3)
        assert leaver.end() == 143
        assert leaver.last_line() == "member: stopped by SIGTERM; the others go on without this member"
        service.announce(metadata_service.NAME)
        run.wait_for_steps(1, after=len(before), steps=3)
        words = "member: left the others; waiting for the node to be taken"
        wait_for(lambda: announced.last_line() == words, DEADLINE_SECONDS, "the member to have left")
        assert announced.process.poll() is None
        announced.process.terminate()
        assert announced.end() == 143
        assert announced.last_line().endswith("; the node was announced to go")
        assert run.finish() == [0]
        steps = [line["step"] for line in run.progress()]
        assert steps == list(range(1, len(steps) + 1))


def test_a_stopped_node_is_left_behind_and_comes_back(account: azurite.Azurite, tmp_path: Path) -> None:
    """A node whose processes are stopped is found by its silence, and joins again when it wakes up."""
    with InPlace(tmp_path, account.table_url, "stopped", "1:3") as run:
        run.start(3)
        before = run.wait_for_steps(3, steps=5)
        victim = run.alive()[-1]
        processes = [victim.pid, *map(int, Path(f"/proc/{victim.pid}/task/{victim.pid}/children").read_text().split())]
        for pid in processes:
            os.kill(pid, signal.SIGSTOP)
        try:
            run.wait_for_steps(2, after=len(before), steps=3)
            known = AzureTableRendezvousBackend(connect(account.table_url, {}), "stopped").snapshot().state
            assert known
            assert len(Round.of(known).team) == 2
        finally:
            for pid in processes:
                os.kill(pid, signal.SIGCONT)
        lines = run.wait_for_steps(3, after=len(run.progress()), steps=3)
        assert run.finish() == [0, 0, 0]
        run.assert_no_step_lost()
        assert lines


def test_training_does_not_need_the_table(account: azurite.Azurite, tmp_path: Path) -> None:
    """While the table refuses connections, or accepts them and does not answer, for longer than a node may be
    silent, no step waits and no node fails. Afterwards, no node counts as dead. A node whose work ends in the
    meantime waits, and ends with 0."""
    with InPlace(tmp_path, account.table_url, "away", "1:2", PET_RDZV_CONF=f"{IMPATIENT},close_timeout=1") as run:
        run.start(2)
        before = run.wait_for_steps(2, steps=5)
        account.stop()
        try:
            run.wait_for_steps(2, after=len(before), steps=100)
        finally:
            account.restart_if_dead()
        os.kill(account.pid, signal.SIGSTOP)
        try:
            run.wait_for_steps(2, after=len(run.progress()), steps=100)
        finally:
            os.kill(account.pid, signal.SIGCONT)
        run.wait_for_steps(2, after=len(run.progress()), steps=60)
        account.stop()
        try:
            (tmp_path / "finish").touch()
            said = "the work is done, and the table is waited for"
            for log in (agent.log for agent in run.agents):
                wait_for(lambda: said in log.read_text(), DEADLINE_SECONDS, f"{log.name}: {said}")  # noqa: B023 (called at once)
        finally:
            account.restart_if_dead()
        assert run.finish() == [0, 0]
        steps = [line["step"] for line in run.progress()]
        assert steps == list(range(1, len(steps) + 1))


def children(process: int) -> list[str]:
    """Return the ids of the processes that this process started."""
    return Path(f"/proc/{process}/task/{process}/children").read_text().split()


def test_a_worker_that_does_not_come_back_is_started_again(account: azurite.Azurite, tmp_path: Path) -> None:
    """A worker that hangs after its round was cut costs the other node some seconds: that node goes on alone. Such a
    worker, and one that is stopped while its agent is not, is killed and started again, without counting as a failure,
    and the team continues from the other node's memory.
    """
    env = {"PET_RDZV_CONF": IMPATIENT, "PET_MAX_RESTARTS": "0"}
    with InPlace(tmp_path, account.table_url, "hangs", "1:2", **env) as run:
        run.start(1)
        run.start(1, HANGS="1")
        run.wait_for_steps(2, steps=5)
        (hanging,) = children(run.agents[1].pid)
        (tmp_path / "hang").touch()
        wait_for(lambda: not (tmp_path / "hang").exists(), DEADLINE_SECONDS, "the worker to hang")
        run.wait_for_steps(1, after=len(run.progress()), steps=1)
        assert hanging in children(run.agents[1].pid)
        run.wait_for_steps(2, after=len(run.progress()), steps=5)
        (worker,) = children(run.agents[0].pid)
        os.kill(int(worker), signal.SIGSTOP)
        wait_for(lambda: not Path(f"/proc/{worker}").exists(), DEADLINE_SECONDS, "the stopped worker to go")
        run.wait_for_steps(2, after=len(run.progress()), steps=5)
        assert run.finish() == [0, 0]
        run.assert_no_step_lost()


def test_bad_data_ends_the_run(account: azurite.Azurite, tmp_path: Path) -> None:
    """A worker that exits with 2 ends its node at once, although restarts are left, and the other nodes of the run
    with 75."""
    with InPlace(tmp_path, account.table_url, "bad", "2") as run:
        (other,) = run.start(1)
        (bad,) = run.start(1, BAD_DATA="1")
        assert (bad.end(), other.end()) == (2, 75)
        assert "worker failed: process" in bad.last_line()


def test_a_trainer_loses_nothing(account: azurite.Azurite, tmp_path: Path) -> None:
    """cifar_elastic runs on two nodes, one of which is killed. Each step has one row, with the loss of an
    undisturbed run of one process. No checkpoint is read, because a survivor has the state in memory."""
    data = cifar.write(tmp_path / "data", 80, 20)
    alone, together, log = tmp_path / "alone", tmp_path / "together", tmp_path / "log"
    with _trainer(data, alone, [], {}, tmp_path / "alone.log") as trainer:
        assert trainer.wait(DEADLINE_SECONDS) == 0, tail(tmp_path / "alone.log")
    meeting = {"PET_RDZV_ENDPOINT": account.table_url, "PET_RDZV_ID": "trainer", "PET_NNODES": "1:2"}
    launch = ["-m", "elastic.launch", "--in-place"]
    conf = {**meeting, "PET_RDZV_CONF": CONF}
    with _trainer(data, together, launch, conf, log) as first, _trainer(data, together, launch, conf, log) as second:
        wait_for(lambda: len(_losses(together)) > 5, DEADLINE_SECONDS, "some steps")
        first.kill()
        assert second.wait(DEADLINE_SECONDS) == 0, tail(log)
    assert "resumed from" not in log.read_text()
    assert _losses(together).keys() == _losses(alone).keys()
    for step, loss in _losses(together).items():
        assert loss == pytest.approx(_losses(alone)[step], rel=0.01), step  # rounding grows


def test_kills_during_a_checkpoint_change_no_loss(account: azurite.Azurite, tmp_path: Path) -> None:
    """cifar_elastic runs on two nodes. One is killed while a checkpoint is written, later both, and all are
    replaced. Each step has exactly the loss of an undisturbed run on two nodes."""
    data = cifar.write(tmp_path / "data", 80, 20)

    @contextmanager
    def agent(name: str) -> Iterator[subprocess.Popen[bytes]]:
        meeting = {"PET_RDZV_ENDPOINT": account.table_url, "PET_RDZV_ID": name, "PET_NNODES": "2"}
        launch = ["-m", "elastic.launch", "--in-place"]
        conf = {**meeting, "PET_RDZV_CONF": CONF}
        with _trainer(data, tmp_path / name, launch, conf, tmp_path / f"{name}.log", epochs=2, every=5) as process:
            yield process

    def ends(name: str) -> None:
        with agent(name) as first, agent(name) as second:
            codes = [process.wait(2 * DEADLINE_SECONDS) for process in (first, second)]
        assert codes == [0, 0], tail(tmp_path / f"{name}.log")

    def saving(after: int) -> None:
        wait_for(lambda: len(_losses(tmp_path / "killed")) > after, DEADLINE_SECONDS, "some steps")
        folder, marker = tmp_path / "killed-checkpoints", "complete.json"
        seen = {path for path in folder.iterdir() if path.is_dir()} if folder.exists() else set()

        def written() -> list[Path]:
            new = [path for path in folder.glob("*/") if path not in seen and not (path / marker).exists()]
            return [path for path in new if any(path.iterdir())]

        wait_for(written, DEADLINE_SECONDS, "a checkpoint that is being written", every=0.0005)

    ends("whole")
    with agent("killed") as first, agent("killed") as second:
        saving(6)
        first.kill()
        with agent("killed") as third:
            saving(len(_losses(tmp_path / "killed")) + 6)
            second.kill()
            third.kill()
    ends("killed")
    assert "resumed from" in (tmp_path / "killed.log").read_text()
    assert _losses(tmp_path / "killed") == _losses(tmp_path / "whole")


@contextmanager
def _trainer(
    data: Path,
    metrics: Path,
    launch: Sequence[str],
    env: Mapping[str, str],
    log: Path,
    epochs: int = 5,
    every: int = 100,
) -> Iterator[subprocess.Popen[bytes]]:
    """A process of cifar_elastic, or an agent that starts one. Several may write to one log."""
    sizes = ["--width", "8", "--batch-size", "16", "--lr", "0.002", "--log-interval", "1"]
    sizes += ["--epochs", str(epochs), "--checkpoint-every", str(every)]
    argv = [sys.executable, *launch, "cifar_elastic/train.py", "--data", str(data), *sizes]
    argv += ["--metrics-dir", str(metrics), *(["--checkpoint-dir", f"{metrics}-checkpoints"] if launch else [])]
    env = {**os.environ, "OMP_NUM_THREADS": "1", **env}
    with log.open("ab") as out:
        process = subprocess.Popen(argv, cwd=ROOT / "trainers", env=env, stdout=out, stderr=subprocess.STDOUT)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def _losses(folder: Path) -> dict[int, float]:
    file = folder / "metrics.jsonl"
    rows = map(json.loads, file.read_text().split("\n")[:-1]) if file.exists() else []
    return {row["step"]: row["train_loss"] for row in rows if "train_loss" in row}


@pytest.mark.skipif(bool(hosts.why_not()), reason=hosts.why_not())
def test_a_host_loses_its_network_and_gets_it_back(account: azurite.Azurite, tmp_path: Path) -> None:
    """A host loses its network without a notice, and the others continue without it. With its network back, it
    joins again."""
    with hosts.hosts(3) as made, hosts.forwarded(account.ports.table) as port:
        connection = account.connection_string.replace(
            account.table_url, f"http://{hosts.GATEWAY}:{port}/{azurite.ACCOUNT}"
        )
        with InPlace(tmp_path, "", "unplugged", "1:3", AZURE_STORAGE_CONNECTION_STRING=connection) as run:
            for host in made:
                run.start(prefix=host.prefix, GLOO_SOCKET_IFNAME="eth0", PET_LOCAL_ADDR=host.address)
            before = run.wait_for_steps(3, steps=5)
            made[1].unplug()
            run.wait_for_steps(2, after=len(before), steps=3)
            made[1].plug()
            run.wait_for_steps(3, after=len(run.progress()), steps=3)
            assert run.finish() == [0, 0, 0]
            run.assert_no_step_lost()

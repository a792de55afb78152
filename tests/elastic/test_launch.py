"""How a member ends: exit code and last line. The workers are shell commands, which start at once."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from torch.distributed.elastic.rendezvous.api import RendezvousParameters, rendezvous_handler_registry

from emulators.process import wait_for
from emulators.testing import azurite
from tests.elastic import agents
from trainers.elastic import client, launch
from trainers.elastic.backend import AzureTableRendezvousBackend
from trainers.elastic.client import Table, connect
from trainers.elastic.handler import CHOICES, NAME, SECONDS, create
from trainers.elastic.protocol import Round

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
SH = ("--no-python", "sh", "-c")


@pytest.fixture(scope="module")
def table(account: azurite.Azurite) -> Iterator[Table]:
    with closing(connect(account.table_url, {})) as made:
        yield made


Member = Callable[..., tuple[int, str]]


@pytest.fixture
def member(
    table: Table, run: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Member]:
    """Call the launcher in this process with these arguments. Return its exit code and its last line."""
    handlers = [(number, signal.getsignal(number)) for number in SIGNALS]
    for name in ("TORCH_ELASTIC_WORKER_IDENTICAL", "TORCHELASTIC_SIGNALS_TO_HANDLE", "OMP_NUM_THREADS"):
        monkeypatch.setenv(name, "1" if name != "TORCHELASTIC_SIGNALS_TO_HANDLE" else "SIGTERM")  # restored afterwards

    def call(
        *argv: str, endpoint: str = table.url, nnodes: str = "1", conf: str = "join_timeout=60"
    ) -> tuple[int, str]:
        rendezvous = [f"--rdzv-endpoint={endpoint}", f"--rdzv-id={run}", f"--rdzv-conf={conf}", f"--nnodes={nnodes}"]
        code = launch.main([*rendezvous, *argv])
        return code, capfd.readouterr().err.splitlines()[-1]

    yield call
    for number, handler in handlers:
        signal.signal(number, handler)
    rendezvous_handler_registry._registry.pop(NAME, None)


def seen(table: Table, run: str) -> tuple[Round, list[str]]:
    """Return the run's round, and the nodes that neither left nor are done."""
    found = AzureTableRendezvousBackend(table, run).snapshot()
    nodes = [node.name for node in found.nodes.values() if not node.left]
    return Round.of(found.state) if found.state else Round(), nodes


def test_a_run_ends_once(member: Member) -> None:
    """A member exits with 0 when its workers ended with 0. A member that comes after the end exits with 75 and the
    reason."""
    assert member(*SH, "exit 0") == (0, "member: done: all its workers ended with 0")
    code, line = member(*SH, "exit 0")
    assert (code, line.startswith("member: not needed: run ")) == (75, True)


@pytest.mark.parametrize(
    ("command", "code"), [("exit 2", 2), ("exit 3", 3), ("exit 143", 143), ("kill -9 $$$$", 137), ("exit 1", 1)]
)
def test_the_code_of_the_worker_that_failed(member: Member, command: str, code: int) -> None:
    """The exit code is the failed worker's code, or 128 plus the signal that ended the worker (torchrun turns $$
    into $)."""
    got, line = member(*SH, command)
    assert (got, line.startswith("member: worker failed: rank 0 ("), line.endswith(f"ended with {code}")) == (
        code,
        True,
        True,
    )


def test_bad_data_is_final(member: Member, tmp_path: Path) -> None:
    """A worker that exits with 2 ends its agent at once, with the trainer's own sentence, even if restarts are
    left."""
    words = {"message": {"message": "rank 0: bad data: no images", "extraInfo": {"timestamp": "1"}}}
    (tmp_path / "words").write_text(json.dumps(words))
    count = tmp_path / "count"
    script = f"echo >> {count}; cp {tmp_path}/words $TORCHELASTIC_ERROR_FILE; exit 2"
    code, line = member("--max-restarts=5", *SH, script)
    assert (code, count.read_text(), line.endswith("ended with 2: rank 0: bad data: no images")) == (2, "\n", True)


def test_a_mistake_is_not_for_later(member: Member, table: Table) -> None:
    """An error that can't go away is not 75: an impossible table name gives 2, a refused credential 1."""
    assert member(*SH, "exit 0", conf="table=tables")[0] == 2
    wrong = f"AccountName={azurite.ACCOUNT};AccountKey=d3Jvbmc=;TableEndpoint={table.url}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AZURE_STORAGE_CONNECTION_STRING", wrong)
        code, line = member(*SH, "exit 0", endpoint="connection-string")
    assert (code, line.startswith("member: failed: the table of run "), "403" in line) == (1, True, True)


def test_a_program_is_its_text(tmp_path: Path) -> None:
    """A program is identified by its text, wherever its file lies. Its arguments are not printed, because they may
    be secret."""

    def said(where: str, text: str, *arguments: str) -> tuple[str, str]:
        (tmp_path / where).mkdir(exist_ok=True)
        (tmp_path / where / "train.py").write_text(text)
        told: tuple[str, str] = launch._program(launch._arguments([str(tmp_path / where / "train.py"), *arguments]))
        return told

    one = said("a", "1", "--key=x")
    assert said("b", "1", "--key=x") == one
    assert re.fullmatch(r"train\.py \([0-9a-f]{8}\)", one[0])
    assert said("b", "2", "--key=x")[0] != one[0]
    assert said("b", "1", "--key=y") == (one[0], said("b", "1", "--key=y")[1]) != one
    paths = said("a", "1", "--data", "/node/1/data", "--model-dir=/node/1/model", "--lr", "0.1")
    assert said("b", "1", "--data", "/node/2/data", "--model-dir=/node/2/model", "--lr", "0.1") == paths
    assert said("b", "1", "--data", "/node/2/data", "--model-dir=/node/2/model", "--lr", "0.2") != paths


def test_bad_data_counts_more_than_a_lost_peer(member: Member) -> None:
    """Of several failed workers, one that reports bad data (2) decides the exit code."""
    code, line = member("--nproc-per-node=3", *SH, "[ $RANK = 1 ] && exit 2 || exit 1")
    assert (code, "rank 1" in line) == (2, True)


def test_too_few_members(member: Member, table: Table, run: str) -> None:
    """A member that waits in vain for others exits with 75 and leaves. The run stays open for later members."""
    code, line = member(*SH, "exit 0", nnodes="2", conf="join_timeout=1")
    assert (code, "too few members" in line) == (75, True)
    assert seen(table, run) == (Round(), [])


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"endpoint": "https://example.com"}, "expected https://ACCOUNT.table.core.windows.net"),
        ({"conf": "join_timout=5"}, "--rdzv-conf join_timout is unknown; choose from join_timeout, "),
        ({"conf": "read_timeout=0"}, "--rdzv-conf read_timeout must be a whole number above 0, not '0'"),
        ({"conf": "table=a/b"}, "table 'a/b': expected 3 to 63 letters and digits"),
        ({"nnodes": "3:2"}, "min_nodes must be > 0 and <= max_nodes"),
    ],
)
def test_bad_arguments(member: Member, options: Mapping[str, str], says: str) -> None:
    """A wrong argument gives 2 and a line that names the expected value."""
    code, line = member(*SH, "exit 0", **options)
    assert (code, line.startswith("member: bad arguments: "), says in line) == (2, True, True)


def test_an_unreachable_table(member: Member) -> None:
    """A table that is unavailable for read_timeout gives 75, because it may be back later."""
    code, line = member(*SH, "exit 0", endpoint="http://127.0.0.1:9/devstoreaccount1", conf="read_timeout=1")
    assert (code, line.startswith("member: gave up: the table of run ")) == (75, True)


def test_sigterm_before_and_during_work(table: Table, run: str, tmp_path: Path) -> None:
    """SIGTERM gives 75 for a member that still waits for others, and 143 for one at work. Both leave at once."""
    waiting, working = f"{run}-waiting", f"{run}-working"
    env = {**os.environ, "PET_RDZV_ENDPOINT": table.url}
    log = (tmp_path / "log").open("w+")
    with log:
        started = {
            name: subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "elastic.launch",
                    f"--rdzv-id={name}",
                    f"--nnodes={nodes}",
                    *SH,
                    "exec sleep 600",
                ],
                cwd=agents.ROOT / "trainers",
                env=env,
                stderr=log,
            )
            for name, nodes in ((waiting, "2"), (working, "1"))
        }
        for name in started:
            wait_for(lambda: seen(table, name)[1], 120, f"{name} to join")  # noqa: B023 (called at once)
        wait_for(lambda: _children(started[working].pid), 60, "the worker")
        for process in started.values():
            process.terminate()
        assert {name: process.wait(60) for name, process in started.items()} == {waiting: 75, working: 143}
        assert [seen(table, name)[1] for name in started] == [[], []]
        log.seek(0)
        assert {line for line in log.read().splitlines() if line.startswith("member: ")} == {
            "member: left: SIGTERM came before this member had work",
            "member: stopped by SIGTERM; the others go on without this member",
        }


@pytest.mark.parametrize("in_place", [[], ["--in-place"]])
@pytest.mark.parametrize("module", ["torch", "torch.distributed.run", "azure.data.tables"])
def test_sigterm_during_an_import(table: Table, tmp_path: Path, module: str, in_place: list[str]) -> None:
    """SIGTERM during any import of elastic.launch gives 75 and one line, without a traceback."""
    (tmp_path / "sitecustomize.py").write_text(f"""
import os, signal, sys

class Finder:
    def find_spec(self, name, *_):
        if name == "{module}":
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGTERM)

sys.meta_path.insert(0, Finder())
""")
    argv = [sys.executable, "-m", "elastic.launch", f"--rdzv-endpoint={table.url}", "--rdzv-id=a", "--nnodes=1"]
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    ended = subprocess.run(
        [*argv, *in_place, *SH, "exit 3"], cwd=agents.ROOT / "trainers", env=env, capture_output=True, text=True
    )
    assert (ended.returncode, ended.stderr) == (75, "member: left: SIGTERM came before this member had work\n")


def _children(pid: int) -> str:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text()


def test_every_setting_of_torch_is_known(table: Table, run: str) -> None:
    """The settings that PyTorch's dynamic rendezvous documents, and its keep-alive settings, reach the handler."""
    given = {name: "7" for name in CHOICES if name != "table"}
    times = create(RendezvousParameters(NAME, table.url, run, 1, 2, timeout=900, **given)).times
    waits = {times.join, times.last_call, times.close, times.heartbeat, times.interval, times.read, times.lease}
    assert waits | {times.attempts} == {7}


def test_settings_of_other_backends_are_taken(table: Table, run: str, caplog: pytest.LogCaptureFixture) -> None:
    """Settings that PyTorch's own tests pass to any backend, and numbers in quotation marks, give a warning only."""
    with caplog.at_level("WARNING"):
        given = {"is_host": True, "join_timeout": '"7"', "close_timeout": "'8'", "read_timeout": 9}
        times = create(RendezvousParameters(NAME, table.url, run, 1, 2, **given)).times  # type: ignore[arg-type]
    assert (times.join, times.close, times.read) == (7, 8, 9)
    assert "--rdzv-conf is_host is for other backends" in caplog.text
    assert "--rdzv-conf join_timeout is in quotation marks" in caplog.text


def test_a_run_needs_a_name(table: Table) -> None:
    """torchrun's default run id is refused, because everyone who forgets the id would share one run."""
    with pytest.raises(ValueError, match="--rdzv-id is missing"):
        create(RendezvousParameters(NAME, table.url, "none", 1, 2))


def test_the_address_of_a_node(table: Table, run: str) -> None:
    """--local-addr is the node's name. Without it, a node that uses Azurite on the same machine is 127.0.0.1."""
    given = create(RendezvousParameters(NAME, table.url, run, 1, 2, "10.1.2.3"))
    found = create(RendezvousParameters(NAME, table.url, run, 1, 2))
    assert (given.member.me.address, found.member.me.address) == ("10.1.2.3", "127.0.0.1")


@pytest.mark.parametrize("first", ["handler", "backend", "plugin"])
def test_any_module_may_be_the_first(first: str, tmp_path: Path) -> None:
    """torchrun's registry contains the backend, whichever module of an installed package is imported first."""
    installed = tmp_path / "elastic-0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: elastic\nVersion: 0\n")
    (installed / "entry_points.txt").write_text("[torchrun.handlers]\nazure-table = elastic.plugin:plugin\n")
    code = (
        f"import elastic.{first}; from torch.distributed.elastic.rendezvous.api import rendezvous_handler_registry as r"
    )
    done = subprocess.run(
        [sys.executable, "-c", f"{code}; print(*r._registry)"],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{agents.ROOT / 'trainers'}"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, "azure-table" in done.stdout.split()) == (0, True), done.stderr


def test_expired_runs_are_cleaned_up(member: Member, table: Table, run: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first round of a run deletes the rows of expired runs."""
    monkeypatch.setattr(client, "ALIVE", timedelta(seconds=-5))  # what was written this very second may go
    rows = table.rows("long ago", "rendezvous")
    table.lifetime, lifetime = -table.lifetime, table.lifetime
    rows.insert("state", b"x", time.monotonic() + 30)
    table.lifetime = lifetime
    assert member(*SH, "exit 0")[0] == 0
    wait_for(lambda: rows.get("state", time.monotonic() + 30) is None, 30, "the expired rows to go")


def test_every_setting_is_described() -> None:
    """The README has a row with the default of each setting."""
    readme = (agents.ROOT / "trainers" / "elastic" / "README.md").read_text()
    defaults = {**SECONDS, "keep_alive_max_attempt": 2, "table": "`rendezvous`"}
    assert [name for name in CHOICES if f"| `{name}` | {defaults[name]} |" not in readme] == []

"""The commands of the documentation, run page by page on one local cloud."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import jsonschema
import pytest
import typer
from azure.storage.blob import ContainerClient
from PIL import Image

from cli import commands
from emulators.process import wait_for
from local import digits
from local.cloud import Cloud, Options
from tests.e2e import typist
from tests.e2e.desk import Desk, one_node_each
from tests.e2e.docs_blocks import ROOT, blocks

# The order matters: later pages use the runs of earlier pages, and the last page makes notices of ended runs.
EXECUTED = (
    "docs/your-data.md",
    "docs/model.md",
    "docs/compare.md",
    "docs/your-metrics.md",
    "docs/drops.md",
    "README.md",
    "agents/trainyard/SKILL.md",
    "docs/jobs.md",
    "docs/clusters.md",
    "docs/grants.md",
    "docs/operations.md",
    "docs/schedules-and-notices.md",
)
BATCH_AI = {
    "properties": {
        "nodeCount": 1,
        "stdOutErrPathPrefix": "$AZ_BATCHAI_MOUNT_ROOT/x",
        "customToolkitSettings": {"commandLine": "echo done"},
    }
}
SCRIPT = "import pathlib, sys; print(sys.argv)"
JOB = {"command": "echo done", "environment": "azureml:trainyard@latest", "experiment_name": "own"}


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """The folders and files that the pages mention, and a cloud with one node per run and a mail server that is
    unreachable."""
    folder = tmp_path_factory.mktemp("docs")
    digits.write(folder / "digits")
    shutil.copytree(folder / "digits", folder / "my-folder")
    Image.new("L", (28, 28)).save(folder / "digit.png")
    (folder / "my-folder" / "job.yaml").write_text("inputs: {epochs: 1}\n")
    (folder / "job.yml").write_text(json.dumps(JOB))
    shutil.copytree(ROOT / "examples", folder / "examples")
    for name, file in (("src", "train.py"), ("iris", "train.py"), ("points", "points.csv")):
        (folder / name).mkdir()
        (folder / name / file).write_text(SCRIPT)
    mail = {"TRAINYARD_SMTP_URL": "smtp://127.0.0.1:9", "TRAINYARD_MAIL_FROM": "trainyard@example.org"}
    options = Options(node_start_seconds=0.2, app_env=mail, routes=one_node_each(folder))
    with Cloud.start(folder / "cloud", options) as cloud:
        with ContainerClient.from_connection_string(cloud.connection_string, "drops") as drops:
            drops.upload_blob("iris/1/iris.csv", b"1,2")
        yield Desk(cloud, folder)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", EXECUTED)
def test_the_commands_of_a_page_work(desk: Desk, page: str) -> None:
    """Every command of the page works, in order."""
    if page in EXECUTED[-2:]:
        wait_for(lambda: _all_over(desk), 120, "the runs of the pages before to end", 0.5)
    todo = [
        words
        for block in blocks(ROOT / page)
        if block.language == "sh" and not block.why_not
        for words in block.commands
    ]
    assert todo
    ours = [words[2:] for words in todo if words[:2] == ["python3", "trainyard.py"]]
    for words in ours:
        done = typed(desk, words)
        assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout}{done.stderr}"
    for words in todo:  # a clone's scripts, on the commands' results
        if words[1] != "trainyard.py":
            script = [sys.executable, str(ROOT / words[1]), *words[2:]]
            done = subprocess.run(script, cwd=desk.folder, capture_output=True, encoding="utf-8", timeout=100)
            assert done.returncode == 0, done.stderr


SLEEPER = {**JOB, "command": "sleep 600", "compute": "azureml:cpu-cluster"}
# Every command with --json, after the commands that it depends on; <url> is the cloud's address.
AS_JSON = """
submit mnist --data drops/mnist/digits-1 --dry-run
drop my-folder mnist/again --follow
pause cpu-cluster --force
submit sleeper.yml
drop my-folder mnist/again --dry-run
drop my-folder mnist/again
runs
runs --sort -accuracy
compare mnist/again own@latest
show mnist/again
show @latest
report mnist/again
logs mnist/again
metrics mnist/again
metrics mnist/again --png curves.png
fetch mnist/again
predict mnist/again digit.png
note mnist/again "a good one"
tag mnist/again team=vision --remove draft
retry mnist/again -p seed=2
cancel @latest
continue mnist/again -p epochs=2
cancel @latest
import batchai.json --cluster cpu-cluster --dry-run
clusters
clusters plan --file clusters.yaml
clusters --history cpu-cluster
cost
lease cpu-cluster --for 2m --why json
leases
extend 20260131T080000-0123abcd --for 3m
release 20260131T080000-0123abcd
status
du
du --soon
du --log
data log mnist/again
data diff mnist/again@1 mnist/again@now
data files mnist/again@now
schedule add --cron "0 6 1 1 *" --dry-run submit mnist --data drops/mnist/digits-1
schedule add --cron "0 6 1 1 *" submit mnist --data drops/mnist/digits-1
schedule list
schedule log s-0123456789abcdef
schedule pause s-0123456789abcdef
schedule resume s-0123456789abcdef
schedule remove s-0123456789abcdef
notify add --on poison --to ada@example.org
notify list
notify test n-0123456789abcdef
notify log n-0123456789abcdef
notify remove n-0123456789abcdef
grant create --for json --budget 5 --until 1h --routes mnist --clusters cpu-cluster
grant list --open
grant show 0123456789ab
grant narrow 0123456789ab --budget 3
grant extend 0123456789ab --at-once 6
grant revoke 0123456789ab
admin register
admin replay
open @latest --print
completion bash
login <url> --name here
doctor
logout here
evict own@latest
rm mnist/again --yes
cancel own@latest
"""
ELSEWHERE = {
    "mcp": "tests/cli/test_mcp_bridge.py",
    "run": "tests/e2e/test_batchai.py",
    "admin smoke": "tests/e2e/test_api.py",
}  # take minutes of nodes
ELSEWHERE |= dict.fromkeys(("promote", "models", "why", "verify", "reproduce"), "tests/e2e/test_daily.py")  # one story
SCHEMA = json.loads((ROOT / "schemas" / "cli.json").read_text("utf-8"))


def command_of(words: list[str]) -> str:
    """The command's name in the schema: its first word, or both words of a grouped command."""
    return next(name for name in (" ".join(words[:2]), words[0]) if name.replace(" ", "-") in SCHEMA["$defs"])


@pytest.mark.timeout(300)
def test_what_every_command_prints_has_its_schema(desk: Desk) -> None:
    """With --json, each command's output on real runs matches schemas/cli.json."""
    (desk.folder / "sleeper.yml").write_text(json.dumps(SLEEPER))
    (desk.folder / "batchai.json").write_text(json.dumps(BATCH_AI))
    shutil.copy(ROOT / "clusters.yaml", desk.folder)
    commands = [shlex.split(line.replace("<url>", desk.cloud.api)) for line in AS_JSON.strip().splitlines()]
    assert {command_of(words) for words in commands} | set(ELSEWHERE) == every_command()

    for words in commands:
        at = 2 if words[0] == "schedule" else len(words)
        done = typed(desk, [*words[:at], "--json", *words[at:]])
        assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout}{done.stderr}"
        out, name = done.stdout, command_of(words)
        schema = {"$ref": f"#/$defs/{name.replace(' ', '-')}", "$defs": SCHEMA["$defs"]}
        rows = [json.loads(line) for line in out.splitlines()] if name in ("logs", "evict") else [json.loads(out)]
        assert rows, words
        for row in rows:
            jsonschema.Draft202012Validator(schema).validate(row)


def every_command() -> set[str]:
    top: Any = typer.main.get_command(commands.load())
    return {
        f"{name} {each}" if each else name
        for name, found in top.commands.items()
        for each in getattr(found, "commands", [""])
    }


def typed(desk: Desk, words: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """The output of a command, with each made-up name replaced by an existing one."""
    return typist.run([known(desk, word) for word in words], {**desk.env, "BROWSER": "true"})  # it shows nothing


NAMED = {  # a made-up name: the command that lists such things, and the field with the name
    "20260131T080000-0123abcd": (("leases",), "lease"),
    "s-0123456789abcdef": (("schedule", "list"), "id"),
    "n-0123456789abcdef": (("notify", "list"), "id"),
    "0123456789ab": (("grant", "list"), "id"),
}


def known(desk: Desk, word: str) -> str:
    """The name of an existing run, lease, schedule or notice, in place of a made-up name."""
    if word == "mnist-0123456789abcdef":
        return str(desk.ask("show", "mnist/first")["run"])
    if word in NAMED:
        words, field = NAMED[word]
        return str(desk.ask(*words)[0][field])
    return word


def _all_over(desk: Desk) -> bool:
    return all(
        run["archived_at"] or run["state"] in ("failed", "canceled") for run in desk.ask("runs", "--limit", "50")
    )

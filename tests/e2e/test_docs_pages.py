"""The commands of the documentation, typed page after page as they stand there, on one local cloud."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator

import pytest
from azure.storage.blob import ContainerClient

from emulators.process import wait_for
from local import digits
from local.cloud import Cloud, Options
from tests.e2e.desk import Desk
from tests.e2e.docs_blocks import ROOT, blocks
from tests.e2e.typist import type_all

# The order matters: later pages use the runs of earlier ones, and the last one makes notices of runs that end.
EXECUTED = (
    "docs/your-data.md",
    "docs/compare.md",
    "docs/drops.md",
    "README.md",
    "docs/jobs.md",
    "docs/clusters.md",
    "docs/operations.md",
    "docs/schedules-and-notices.md",
)
SCRIPT = "import pathlib, sys; print(sys.argv)"
JOB = {"command": "echo done", "environment": "azureml:trainyard@latest", "experiment_name": "own"}


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """The folders and files that the pages speak of, and a cloud: one node a run, a mail server that nobody reaches."""
    folder = tmp_path_factory.mktemp("docs")
    digits.write(folder / "digits")
    shutil.copytree(folder / "digits", folder / "my-folder")
    (folder / "my-folder" / "job.yaml").write_text("inputs: {epochs: 1}\n")
    (folder / "job.yml").write_text(json.dumps(JOB))
    for name, file in (("src", "train.py"), ("iris", "train.py"), ("points", "points.csv")):
        (folder / name).mkdir()
        (folder / name / file).write_text(SCRIPT)
    mail = {"TRAINYARD_SMTP_URL": "smtp://127.0.0.1:9", "TRAINYARD_MAIL_FROM": "trainyard@example.org"}
    (folder / "routes.yaml").write_text((ROOT / "routes.yaml").read_text("utf-8").replace("nodes: 2", "nodes: 1"))
    options = Options(node_start_seconds=0.2, app_env=mail, routes=folder / "routes.yaml")
    with Cloud.start(folder / "cloud", options) as cloud:
        with ContainerClient.from_connection_string(cloud.connection_string, "drops") as drops:
            drops.upload_blob("iris/1/iris.csv", b"1,2")
        yield Desk(cloud, folder)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("page", EXECUTED)
def test_the_commands_of_a_page_work(desk: Desk, page: str) -> None:
    """Every command of the page does what it says, one after the other."""
    if page in EXECUTED[-2:]:
        wait_for(lambda: _all_over(desk), 120, "the runs of the pages before to end", 0.5)
    todo = [
        words
        for block in blocks(ROOT / page)
        if block.language == "sh" and not block.why_not
        for words in block.commands
    ]
    assert todo
    assert [words for words in todo if words[:2] != ["python3", "trainyard.py"]] == []
    type_all(desk, [words[2:] for words in todo], 250)


def _all_over(desk: Desk) -> bool:
    return all(
        run["archived_at"] or run["state"] in ("failed", "canceled") for run in desk.ask("runs", "--limit", "50")
    )

"""Agents on a local cloud: a pull request trains under a grant and gets one comment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from local import digits
from local.cloud import Cloud, Options
from tests.e2e.desk import ROOT, Desk, one_node_each

TRAIN = """import json, pathlib, sys, time
out = pathlib.Path(sys.argv[1])
out.mkdir(parents=True, exist_ok=True)
if len(sys.argv) > 2:
    raise ValueError("lr must be positive @everyone")
with (out / "metrics.jsonl").open("w") as file:
    for step in range(1, 5):
        print(json.dumps({"step": step, "accuracy": 0.5 + step / 10}), file=file, flush=True)
        time.sleep(1)
"""
GH = """#!/usr/bin/env bash
printf '%s\\n' "$*" >> "$COMMENTS/calls"
cp comment.md "$COMMENTS/comment.md"
"""


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    folder = tmp_path_factory.mktemp("agents")
    digits.write(folder / "digits")
    with Cloud.start(folder / "cloud", Options(node_start_seconds=0.2, routes=one_node_each(folder))) as cloud:
        yield Desk(cloud, folder)


def pull_request(desk: Desk, options: str) -> tuple[int, str, list[str]]:
    """Run the action's script on a folder of code. Return its exit status, the comment, and the calls of gh."""
    checkout, programs = desk.folder / "checkout", desk.folder / "programs"
    for made in (checkout / "code", programs):
        made.mkdir(parents=True, exist_ok=True)
    (checkout / "code" / "train.py").write_text(TRAIN)
    shim = f'#!/usr/bin/env bash\nTRAINYARD_CWD="$PWD" exec env -C "{ROOT}" "{sys.executable}" -m cli "$@"\n'
    for name, text in (("gh", GH), ("trainyard", shim)):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    env = {name: value for name, value in desk.env.items() if name != "TRAINYARD_CWD"}
    env |= {
        "PATH": f"{programs}:{os.environ['PATH']}", "COMMENTS": str(desk.folder), "TRAINYARD_URL": desk.cloud.api,
        "PULL_REQUEST": "7", "BUDGET": "1", "CLUSTERS": "cpu-cluster", "SHARES": "", "CHAMPION": "digits@production",
        "SUBMIT": f'./code --command "python train.py {{metrics}} {options}" --cluster cpu-cluster --timeout 2m',
    }  # fmt: skip
    script = ROOT / "agents" / "pull-request" / "run.sh"
    done = subprocess.run([script], cwd=checkout, env=env, capture_output=True, encoding="utf-8", timeout=280)
    comment = desk.folder / "comment.md"
    assert comment.exists(), done.stdout + done.stderr
    return done.returncode, comment.read_text("utf-8"), (desk.folder / "calls").read_text("utf-8").splitlines()


@pytest.mark.timeout(600)
def test_a_pull_request_trains_and_gets_one_comment(desk: Desk) -> None:
    """The pull request's code trains under its own grant. The comment has metrics, cost and a picture, or the
    reason for the failure."""
    status, comment, calls = pull_request(desk, "")
    assert status == 0
    assert "completed: `accuracy` 0.9" in comment
    assert "no champion yet" in comment
    assert "| cost | " in comment
    assert "at most" in comment
    assert "xychart-beta" in comment
    assert calls == ["pr comment 7 --edit-last --create-if-none --body-file comment.md"]
    status, comment, calls = pull_request(desk, "fail")
    assert status != 0
    assert "**Why it failed** (" in comment
    assert "ValueError: lr must be positive @everyone" in comment
    assert len(calls) == 2
    grants = desk.ask("grant", "list")
    assert [each["purpose"] for each in grants] == ["pull request 7", "pull request 7"]
    assert all(each["runs_used"] == 1 and each["budget"] == 1.0 for each in grants)
    assert all(json.dumps(each).count("tg_") == 0 for each in grants)

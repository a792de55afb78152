"""How commands show the API's answers and errors."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from cli.show import plan, runs

Run = Callable[..., int]
Capture = pytest.CaptureFixture[str]

STATUS: dict[str, Any] = {
    "queues": {"drop-events": {"messages": 3, "poison": 1}, "background": {"messages": 0, "poison": 0}},
    "poison": {"drop-events": ["{not json [bold]"]},
    "drops": [{"drop": "nope/x", "state": "rejected", "blobs": 2, "why": "Unknown route nope. Routes: mnist."}],
    "runs": [
        {
            "run": "mnist-0123",
            "state": "failed",
            "drop": "mnist/x",
            "cluster": "cpu-cluster",
            "nodes": 2,
            "reason": "exited with status code 3",
            "archived_at": None,
        }
    ],
    "clusters": [
        {
            "name": "cpu-cluster",
            "nodes": 1,
            "busy_nodes": 0,
            "min_nodes": 0,
            "max_nodes": 4,
            "decision": {
                "action": "keep",
                "code": "busy",
                "why": "run mnist-0123 is running",
                "at": "2026-01-01T00:00:00Z",
            },
        }
    ],
}


def test_status_shows_everything(server: Any, run: Run, capsys: Capture) -> None:
    """A run's reason, a drop's reason, a decision and a poison message's text are all on the screen."""
    server.says("/api/status", STATUS)
    assert run("status", "--url", server.url) == 0
    said = capsys.readouterr().out
    for part in (
        "mnist-0123",
        "exited with status code 3",
        "Unknown route nope",
        "keep: run mnist-0123 is running",
        "{not json [bold]",
    ):
        assert part in said


def test_status_as_json(server: Any, run: Run, capsys: Capture) -> None:
    """--json prints the API's answer unchanged."""
    server.says("/api/status", STATUS)
    assert run("status", "--url", server.url, "--json") == 0
    assert json.loads(capsys.readouterr().out) == STATUS


def test_an_empty_system_says_so(server: Any, run: Run, capsys: Capture) -> None:
    """Parts without rows are shown as none."""
    server.says("/api/status", {"queues": {}, "poison": {}, "drops": [], "runs": [], "clusters": []})
    assert run("status", "--url", server.url) == 0
    assert capsys.readouterr().out.count("none") == 5


@pytest.mark.parametrize(("status", "exit_code"), [(400, 1), (409, 1), (500, 1), (404, 3), (429, 6), (503, 6)])
def test_a_refusal_is_told_in_the_apis_words(
    server: Any, run: Run, capsys: Capture, status: int, exit_code: int
) -> None:
    """An error of the API gives its exit code and the API's own detail on standard error, without a traceback."""
    server.says("/api/status", {"title": "no", "detail": "The workspace is closed."}, status, retry_after="60")
    assert run("status", "--url", server.url) == exit_code
    assert "The workspace is closed." in capsys.readouterr().err


def test_a_missing_key_is_explained(server: Any, run: Run, capsys: Capture) -> None:
    """For a 401 without a body, as the Functions host gives, the error says that a key is needed and how to give
    one."""
    server.says("/api/status", b"", 401)
    assert run("status", "--url", server.url) == 1
    assert f"`login {server.url}` stores one" in capsys.readouterr().err


def test_a_role_that_is_missing_and_a_login_that_ended(server: Any, run: Run, capsys: Capture) -> None:
    """A caller without the role reads the missing role; for a refused key the error says that the key may have
    expired."""
    server.says("/api/runs?limit=1", {"runs": []})
    assert run("login", server.url, "--token", "t") == 0
    assert "as '127.0.0.1'" in capsys.readouterr().out
    server.says("/api/status", {"detail": "This needs the role trainyard.reader."}, 403)
    assert run("status") == 1
    assert capsys.readouterr().err.strip().endswith("This needs the role trainyard.reader.")
    server.says("/api/status", b"", 401)
    assert run("status") == 1
    assert "which may have expired" in capsys.readouterr().err


def test_an_api_that_is_away(run: Run, capsys: Capture) -> None:
    """If nothing listens, the message gives advice, and the exit status says that a retry may work."""
    assert run("status", "--url", "http://127.0.0.1:9/api") == 6
    assert "trainyard.py up" in capsys.readouterr().err


def test_something_else_at_the_address(server: Any, run: Run, capsys: Capture) -> None:
    """An HTML page is reported as no answer of the API."""
    server.says("/api/status", b"<html>welcome</html>")
    assert run("status", "--url", server.url) == 1
    assert "Is it Trainyard's API?" in capsys.readouterr().err


def test_runs_follows_the_pages(server: Any, run: Run, capsys: Capture) -> None:
    """runs requests further pages by their tokens until it has enough runs, or there are no more."""
    rows = [{**STATUS["runs"][0], "run": f"r{n}", "created_at": "2026-01-01T00:00:00+00:00"} for n in range(3)]
    server.says("/api/runs?state=failed&limit=3&details=true", {"runs": rows[:2], "continue": "t/1"})
    server.says("/api/runs?state=failed&limit=1&details=true&continue=t%2F1", {"runs": rows[2:], "continue": None})
    assert run("runs", "--state", "failed", "--limit", "3", "--json", "--url", server.url) == 0
    assert [row["run"] for row in json.loads(capsys.readouterr().out)] == ["r0", "r1", "r2"]


@pytest.mark.parametrize(
    "argv",
    [
        ("submit",),
        ("submit", "mnist", "--template", "mnist"),
        ("submit", "mnist", "-p", "epochs"),
        ("submit", "mnist", "--timeout", "soon"),
        ("runs", "--since", "yesterday"),
        ("logs", "r", "--rank", "-1"),
    ],
    ids=" ".join,
)
def test_a_command_line_without_sense(server: Any, run: Run, argv: tuple[str, ...]) -> None:
    """An invalid command line ends with status 2, and nothing is sent."""
    assert run(*argv, "--url", server.url) == 2
    assert server.asked == []


def test_a_job_file_that_is_none(server: Any, run: Run, capsys: Capture, tmp_path: Any) -> None:
    """A broken job file is reported with the place of the fault, and nothing is sent."""
    (tmp_path / "job.yaml").write_text("command: [unclosed\n")
    assert run("submit", "--job", "job.yaml", "--url", server.url) == 1
    assert "line 2" in capsys.readouterr().err
    assert server.asked == []


def test_a_key_goes_with_each_request(server: Any, run: Run, capsys: Capture) -> None:
    """login stores a key under a name, later commands send it, and logout deletes it."""
    server.says("/api/runs?limit=1", {"runs": [], "continue": None})
    server.says("/api/status", STATUS)
    assert run("login", server.url, "--name", "here", "--key", "secret-key") == 0
    assert run("status") == 0
    assert {headers.get("x-functions-key") for _, headers in server.asked} == {"secret-key"}
    assert run("logout") == 0
    assert run("status") == 1
    assert "secret-key" not in "".join(capsys.readouterr())


def test_doctor_says_what_is_wrong(server: Any, run: Run, capsys: Capture) -> None:
    """doctor names the failed check, with the API's detail and advice, and ends with status 1."""
    checks = {"storage": {"ok": False, "detail": "403 from the account"}, "workspace": {"ok": True, "detail": ""}}
    server.says("/api/health", {"status": "degraded", "checks": checks}, 503)
    server.says("/api/status", STATUS)
    assert run("doctor", "--url", server.url, "--json") == 1
    found = {row["what"]: row for row in json.loads(capsys.readouterr().out)}
    assert (found["storage"]["verdict"], found["storage"]["found"]) == ("broken", "403 from the account")
    assert found["queues"]["found"] == "poison messages: 1 in drop-events"
    assert all(row["mend"] for row in found.values() if row["verdict"] != "good")


def test_a_login_that_fails_is_not_stored(server: Any, run: Run, tmp_path: Path) -> None:
    """Only a deployment that admits the caller becomes a profile."""
    server.says("/api/runs?limit=1", {"detail": "no"}, 401)
    assert run("login", server.url, "--key", "wrong") == 1
    assert not (tmp_path / "config" / "profiles.json").exists()
    server.says("/api/runs?limit=1", {"runs": [], "continue": None})
    assert run("login", server.url, "--key", "right") == 0
    assert "right" not in (tmp_path / "config" / "profiles.json").read_text()


def test_the_version_is_said(run: Run, capsys: Capture) -> None:
    """--version needs no cloud."""
    assert run("--version") == 0
    assert re.fullmatch(r"trainyard \d+\.\d+\.\d+\n", capsys.readouterr().out)


def test_an_address_without_api_is_told(server: Any, run: Run, capsys: Capture) -> None:
    """For --url with the address of the app instead of its API, the error names the missing part."""
    assert run("status", "--url", server.url.removesuffix("/api")) == 3
    assert "ends in /api" in capsys.readouterr().err


def test_a_table_in_a_pipe_has_no_blanks_at_its_lines_ends(server: Any, run: Run, capsys: Capture) -> None:
    """A table in a pipe has no padding to the width of a terminal."""
    server.says("/api/status", STATUS)
    assert run("status", "--url", server.url) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 5
    assert [line for line in lines if line != line.rstrip()] == []


@pytest.mark.parametrize(("reasons", "status"), [([], 0), ([{"code": "cluster_busy", "message": "It would wait."}], 1)])
def test_a_dry_run_says_by_its_status_whether_it_could_start(
    run: Run, server: Any, capsys: Capture, reasons: list[Any], status: int
) -> None:
    """The exit status tells a script that a run could not start now; the answer is printed anyway."""
    cost = {"project": "", "estimated": None, "greatest": None, "price": None, "price_from": ""}
    server.says("/api/runs?dry_run=true", {"job": {"name": "run-1"}, "reasons": reasons, "cost": cost})
    for flags in ([], ["--json"]):
        assert run("submit", "mnist", "--dry-run", "--url", server.url, *flags) == status
        assert "run-1" in capsys.readouterr().out


def test_the_summary_of_a_dry_run() -> None:
    """The summary shows what runs where, on which data, at what cost, and the obstacles to its start."""
    job = {
        "name": "run-1", "experiment_name": "digits", "compute": "azureml:cpu-cluster", "command": "python train.py\nx",
        "resources": {"instance_count": 2}, "environment": "azureml:torch:1", "limits": {"timeout": 3600},
        "inputs": {"data": {"type": "uri_folder", "path": "azureml://datastores/d/paths/x/"}, "epochs": 3},
    }  # fmt: skip
    cost = {"project": "vision", "estimated": 0.4, "greatest": 2.1, "price": 1.0, "price_from": ""}
    out = StringIO()
    reasons = [{"code": "cluster_busy", "message": "It would wait."}]
    Console(file=out, width=100).print(plan.plan({"job": job, "reasons": reasons, "cost": cost}))
    lines = [" ".join(line.split()) for line in out.getvalue().splitlines()]
    assert lines == [
        "run run-1", "experiment digits", "cluster cpu-cluster", "nodes 2", "command python train.py",
        "environment torch:1", "data data azureml://datastores/d/paths/x/", "parameters epochs=3", "time limit 3600 s",
        "cost of project vision about $0.40, at most $2.10", "not now: It would wait.", "The whole job: --json",
    ]  # fmt: skip


def test_the_best_value_of_a_sweep_and_the_last_one_have_labels() -> None:
    """The best trial's best value and the possibly worse values of its saved model are labelled."""
    sweep = {"trials": 6, "trials_ended": 6, "best_trial": "run-1-t4", "best_value": 0.98, "sweep_closing": ""}
    sweep |= {"trials_dollars": 0.1}
    metrics = {"of_model": {"loss": 0.95}, "best": {"loss": 0.9}, "best_steps": {"loss": 3}, "by_trainer": True}
    answer = {"run": "run-1", "state": "completed", "experiment": "e", "sweep": sweep, "metrics": metrics}
    facts = runs._facts({**answer, "created_at": "2026-01-01T00:00:00+00:00", "history": []})
    assert facts["best trial"].plain == "run-1-t4, its best value is 0.98"
    assert facts["metrics of the best trial's model"].plain.startswith("loss 0.95")
    assert "metrics" not in facts

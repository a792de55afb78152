"""Invalid options are refused with the name of the option, its value and the rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import typer

from cli.api.client import duration
from cli.commands.notes_and_tags import pairs
from cli.commands.runs import sweep
from cli.files.folder_job import job_of
from tests.cli.conftest import Server

Typed = Callable[..., int]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"trials": 4}, r"--trials makes a sweep, which also needs --metric NAME"),
        ({"metric": "loss"}, r"--metric makes a sweep, which also needs --trials N"),
        ({"at_once": 2}, r"--at-once makes a sweep, which also needs --trials N.* and --metric NAME"),
    ],
)
def test_a_sweep_names_the_option_that_is_missing(given: dict[str, Any], why: str) -> None:
    """The error asks only for the missing option."""
    with pytest.raises(typer.BadParameter, match=why):
        sweep(given)


def test_a_brace_that_is_never_closed_is_refused() -> None:
    """The refusal comes before any upload. Braces of the shell and of awk are no names."""
    with pytest.raises(typer.BadParameter, match=r"--command has '\{x' without a closing brace; write \{x\}"):
        job_of("python {x", {}, False, "")
    for command in ("awk '{print $1}' f", "echo ${HOME}", "touch {a,b}", "echo '{'", "python {x}"):
        assert job_of(command, {}, False, "")["command"]


def test_a_tag_with_another_name_is_refused() -> None:
    """The error quotes the name and gives the rule."""
    with pytest.raises(typer.BadParameter, match=r"can't be 'a b'; use up to 100 letters, digits, dots"):
        pairs(["a b=c"])


@pytest.mark.parametrize(
    ("seconds", "text"), [(5, "5s"), (60, "1m"), (5400, "90m"), (8640000, "100d"), (2678400, "31d"), (0, "0s")]
)
def test_seconds_are_shown_as_they_are_written(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("command", "path", "detail", "shown"),
    [
        (
            ["submit", "mnist", "--timeout", "5"], "/runs",
            "timeout_seconds is 5; use a number of at least 60.", "--timeout is 5s; use at least 1m.",
        ),
        (
            ["lease", "cpu", "--for", "100d", "--why", "x"], "/clusters/cpu/leases",
            "seconds is 8640000; use a number of at most 2678400.", "--for is 100d; use at most 31d.",
        ),
        (["submit", "mnist"], "/runs", "data is missing: name the data.", "--data is missing: name the data."),
    ],
)  # fmt: skip
def test_the_apis_rule_names_the_option(
    server: Server,
    run: Typed,
    capsys: pytest.CaptureFixture[str],
    command: list[str],
    path: str,
    detail: str,
    shown: str,
) -> None:
    """The API names the fields of a request, but a person at the command line knows only its options."""
    server.says(f"/api{path}", {"detail": detail}, 400)
    assert run(*command, "--url", server.url) == 1
    err = capsys.readouterr().err
    assert shown in err
    assert "400" not in err


def test_an_empty_note_is_refused(server: Server, run: Typed, capsys: pytest.CaptureFixture[str]) -> None:
    """No request is sent to the API."""
    assert run("note", "mnist-0123456789abcdef", " ", "--url", server.url) == 2
    assert "the note is empty" in capsys.readouterr().err
    assert not server.asked


def test_metrics_of_another_name_are_named(server: Server, run: Typed, capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown metric name is refused with the known names."""
    name = "mnist-0123456789abcdef"
    server.says(f"/api/runs/{name}", {"run": name, "state": "completed", "archived_at": "now"})
    server.says(f"/api/runs/{name}/metrics?name=acc", {"series": {}})
    server.says(f"/api/runs/{name}/metrics", {"series": {"test_accuracy": [[1, 0.5]], "loss": [[1, 2.0]]}})
    run("metrics", name, "--name", "acc", "--url", server.url)
    assert "No acc. There are: loss, test_accuracy." in capsys.readouterr().err


def test_a_log_that_is_silent_says_why(server: Server, run: Typed, capsys: pytest.CaptureFixture[str]) -> None:
    """`logs -f` of a run that waits for nodes says so at once."""
    name = "mnist-0123456789abcdef"
    now = "2026-01-31T08:00:00+00:00"
    history = [{"state": "received", "at": now}, {"state": "queued", "at": now}]
    row = {"run": name, "state": "queued", "created_at": now, "archived_at": None, "history": history}
    server.says(f"/api/runs/{name}", row)
    run("logs", "-f", name, "--url", server.url)
    assert f"{name}: allocating nodes, " in capsys.readouterr().err

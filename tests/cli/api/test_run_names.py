"""Names for a drop, its data or a run: whole names, prefixes, @latest, and a run for its data."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest

from cli.api import run_names
from cli.api.client import Api
from cli.errors import NotFound

RUN = "mnist-0123456789abcdef"


@pytest.fixture
def api(server: Any) -> Api:
    server.says("/api/find?name=mnist%2Fdig", {"run": RUN, "drop": "mnist/digits-1"})
    server.says("/api/find?name=data%2Fpoints", {"run": "", "drop": "data/points"})
    server.says("/api/find?name=mnist%40latest", {"run": RUN, "drop": ""})
    server.says("/api/find?name=mnist%2Fnone", {"detail": "There is no run or drop.", "code": "not_found"}, 404)
    server.says(f"/api/runs/{RUN}", {"run": RUN, "drop": "mnist/digits-1"})
    server.says("/api/runs/run-0123456789abcdef", {"run": "run-0123456789abcdef", "drop": ""})
    return Api(server.url)


@pytest.mark.parametrize(
    ("told", "text", "meant"),
    [
        (run_names.drop_name, "mnist/dig", "mnist/digits-1"),
        (run_names.drop_name, "mnist@latest", "mnist/digits-1"),
        (run_names.drop_name, RUN, "mnist/digits-1"),
        (run_names.data_ref, "mnist/dig@2", "mnist/digits-1@2"),
        (run_names.data_ref, "mnist@latest@now", "mnist/digits-1@now"),
        (run_names.data_ref, "mnist@latest", RUN),
        (run_names.data_path, "drops/mnist/dig", "drops/mnist/digits-1"),
        (run_names.data_path, "drops/mnist/dig/train", "drops/mnist/digits-1/train"),
        (run_names.data_path, "mnist@latest", "drops/mnist/digits-1"),
        (run_names.data_path, "drops/mnist/none", "drops/mnist/none"),
        (run_names.data_path, "azureml://datastores/d/paths/a@b", "azureml://datastores/d/paths/a@b"),
        (run_names.data_path, "workspaceblobstore/some/path", "workspaceblobstore/some/path"),
        (run_names.data_path, "data/points/x", "drops/data/points/x"),
        (run_names.data_path, "mnist/dig", "mnist/dig"),
    ],
)
def test_a_name_is_made_whole(api: Api, told: Callable[[Api, str], str], text: str, meant: str) -> None:
    """A prefix, @latest and a run resolve to their drop; a whole name, or a name elsewhere, stays."""
    assert told(api, text) == meant


def test_a_run_without_a_drop_says_so(api: Api) -> None:
    """A run made from no drop names no data, and an unknown drop is left to the API to refuse."""
    with pytest.raises(NotFound, match="was not started by a drop"):
        run_names.drop_name(api, "run-0123456789abcdef")
    with pytest.raises(NotFound, match="There is no run or drop"):
        run_names.data_ref(api, "mnist/none")


def test_a_whole_name_that_is_wrong_is_answered_with_what_was_meant(
    server: Any, run: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    """A name in a run's form is used unchanged; only if no such run exists are similar names suggested."""
    wrong = f"{RUN[:-1]}0"
    server.says(f"/api/find?name={wrong}", {"detail": f"There is no run. Did you mean {RUN!r}?", "code": "x"}, 404)
    for command in ("show", "cancel"):
        assert run(command, wrong, "--url", server.url) == 3
        assert "Did you mean" in capsys.readouterr().err


def test_mine_are_those_of_my_id_and_those_of_my_name_without_one(
    server: Any, run: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    """--mine finds runs and schedules by the object id, and those without an id by the name; a namesake's are
    excluded."""

    def row(name: str, at: str, owner_id: str) -> dict[str, Any]:
        return {"run": name, "state": "completed", "created_at": at, "owner": "ann", "owner_id": owner_id}

    server.says("/api/me", {"auth": "entra", "name": "ann", "id": "0a1b", "may_change": True})
    mine, drops, other = row("r1", "2026-01-01", "0a1b"), row("r2", "2026-01-02", ""), row("r3", "2026-01-03", "9f9f")
    server.says("/api/runs?owner=0a1b&limit=20&details=true", {"runs": [mine], "continue": None, "looked_at": 1})
    server.says(
        "/api/runs?owner=ann&limit=20&details=true", {"runs": [other, drops, mine], "continue": None, "looked_at": 3}
    )
    assert run("runs", "--mine", "--json", "--url", server.url) == 0
    assert [each["run"] for each in json.loads(capsys.readouterr().out)] == ["r2", "r1"]
    weekly = {"request": {}, "cron": "0 6 * * 1", "timezone": "UTC", "paused": True, "next_at": None, "last_run": ""}
    people = (("ann", "0a1b"), ("ann", ""), ("ann", "9f9f"), ("0a1b", ""), ("anna", "0a1b"))
    rows = [weekly | {"id": f"s-{n}", "owner": name, "owner_id": its} for n, (name, its) in enumerate(people)]
    server.says("/api/schedules", rows)
    assert run("schedule", "list", "--mine", "--json", "--url", server.url) == 0
    assert [each["id"] for each in json.loads(capsys.readouterr().out)] == ["s-0", "s-1", "s-4"]


@pytest.mark.parametrize(("name", "drop", "meant"), [("data/points", "data/points2", ""), ("mnist-01", "", RUN)])
def test_rm_without_a_question_takes_whole_names(
    server: Any, run: Any, capsys: Any, name: str, drop: str, meant: str
) -> None:
    """--yes needs a whole name: `rm data/points --yes` deletes no data/points2, even if data/points is gone."""
    server.says(f"/api/find?name={quote(name, safe='')}", {"drop": drop, "run": meant})
    assert run("rm", name, "--yes", "--url", server.url) == 3
    assert f"Nothing has the name '{name}'" in (told := capsys.readouterr().err)
    assert (drop or meant) in told
    assert not [path for path, _ in server.asked if "remove" in path]


def test_a_submission_says_which_data_a_beginning_meant(server: Any, run: Any, capsys: Any) -> None:
    """submit prints the drop that a prefix resolved to, because the drop of exactly that name may be gone."""
    server.says("/api/find?name=data%2Fpoints", {"drop": "data/points2", "run": ""})
    server.says("/api/runs", {"run": RUN, "estimated_cost": None, "greatest_cost": None}, 202)
    assert run("submit", "mnist", "--data", "drops/data/points", "--url", server.url) == 0
    assert "Its data: drops/data/points2" in capsys.readouterr().err

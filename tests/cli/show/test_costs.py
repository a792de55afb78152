"""The report of `cost`: every day in the picture, a CSV without spreadsheet formulas, and sentences for missing
figures."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from cli.api.phases import duration
from cli.commands import cost
from cli.show.costs import before, dollars, of_run, saved, share
from cli.show.png import draw_days
from cli.show.tables import metric
from cli.terminal_text import Console

KINDS = cost.KINDS
ROOT = Path(__file__).resolve().parents[3]


def line(key: str, **more: Any) -> dict[str, Any]:
    kinds = dict.fromkeys(KINDS, 0.0)
    known = {
        "key": key,
        "name": "",
        "spent": 3.0,
        **kinds,
        "training": 2.0,
        "idle": 1.0,
        "idle_share": 1 / 3,
        "node_hours": 1.5,
    }
    return known | {"unpriced_hours": 0.0, "unknown_hours": 0.0, "saved_always_on": None, "saved_default": None} | more


def report(*lines: dict[str, Any], **more: Any) -> dict[str, Any]:
    total = line("", unpriced_hours=2.0, saved_default=-0.5)
    days = [{"day": day, **dict.fromkeys(KINDS, 1.0)} for day in ("2026-01-30", "2026-02-02")]
    known = {"since": "2026-01-30T00:00:00+00:00", "by": "project", "total": total, "lines": list(lines), "days": days}
    return known | {"standing": {"registry": 5.0}, "budgets": []} | more


def text(found: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> str:
    Console(width=140).print(cost.picture(found))
    return capsys.readouterr().out


def test_what_is_missing_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    """Costs without a project, hours without a price, and costs above those with Azure ML's default idle time are
    named in sentences."""
    budget = {"project": "a", "month": None, "run": 2.0, "spent": 3.0, "kept_back": 0.5, "reached_at": None}
    told = text(report(line("a"), line(""), budgets=[budget]), capsys)
    assert "no project" in told
    assert "No price is known for 2.0 node hours" in told
    assert "$0.50 more than with Azure ML's default idle time" in told
    assert "Budget of a: $3.00 this month, $0.50 kept back for its runs; at most $2.00 a run." in told
    assert "no node was seen" in text(report(), capsys)


def test_a_missing_day_is_told_with_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    """A day whose record can't be read is named below the table, with advice, even if nothing else was spent."""
    gap = {"day": "2026-01-10", "cluster": "gpu", "why": "Column rows can't be read.", "advice": "Delete the row."}
    for lines in ((line("a"),), ()):
        told = " ".join(text(report(*lines, missing=[gap]), capsys).split())
        assert "What gpu cost on 2026-01-10 is missing: Column rows can't be read. Delete the row." in told


def test_a_name_can_not_become_a_formula(capsys: pytest.CaptureFixture[str]) -> None:
    """In the CSV a name that begins like a formula is text to a spreadsheet."""
    cost._write_csv(report(line("=HYPERLINK(1)"), by="owner"))
    assert "'=HYPERLINK(1),,3.0,2.0" in capsys.readouterr().out


def test_namesakes_are_told_apart(capsys: pytest.CaptureFixture[str]) -> None:
    """An owner is shown by name, plus the object id if two owners share the name; a name without an id is no proof."""
    lines = [line("0a1b", name="ann"), line("2c3d", name="ann"), line("4e5f", name="bob"), line("ann"), line("")]
    told = text(report(*lines, by="owner"), capsys)
    for name in ("ann (0a1b) ", "ann (2c3d) ", "bob  ", "ann, unverified", "nobody"):
        assert name in told
    assert "4e5f" not in told
    cost._write_csv(report(*lines, by="owner"))
    assert "4e5f,bob,3.0" in capsys.readouterr().out


def test_days_without_nodes_are_in_the_picture(tmp_path: Path) -> None:
    """The picture has every day from the first to the last, and works without any day."""
    assert [day["day"] for day in cost._every_day(report()["days"])] == [
        "2026-01-30", "2026-01-31", "2026-02-01", "2026-02-02",
    ]  # fmt: skip
    for number, days in enumerate((cost._every_day(report()["days"]), [])):
        draw_days(days, KINDS, "cost", tmp_path / f"{number}.png")
        assert (tmp_path / f"{number}.png").read_bytes().startswith(b"\x89PNG")


def test_money_in_words() -> None:
    """Dollars have cents; less than a cent is shown as less; an unknown cost gives its reason."""
    assert [dollars(amount) for amount in (0, 0.004, 0.01, 1234.5, -2)] == [
        "$0.00",
        "<$0.01",
        "$0.01",
        "$1,234.50",
        "-$2.00",
    ]
    assert before(0.4, 2.1) == "about $0.40, at most $2.10"
    assert before(None, None, "No price is known.") == "No price is known."
    run = {"estimated_cost": None, "greatest_cost": 3.0, "cost": {"training": 1.0, "allocation": 0, "idle": 0.5}}
    run["cost"] |= {"unpriced": True}  # type: ignore[operator]
    assert of_run(run) == "$1.50 so far: training $1.00, idle $0.50, some node hours without a price (at most $3.00)"
    ended = of_run(run | {"state": "completed"})
    assert ended == "$1.50: training $1.00, idle $0.50, some node hours without a price (at most $3.00)", "not `so far`"
    sweep = {"sweep": {"trials_dollars": 1.5}, "greatest_cost": 3.0, "state": "running"}
    assert of_run(sweep) == "$1.50 for its trials so far (at most $3.00)"
    assert of_run(sweep | {"state": "completed"}) == "$1.50 for its trials"


def test_costs_are_shown_by_day(capsys: pytest.CaptureFixture[str]) -> None:
    """--by day has a line with the sum for each day, even for a day without nodes."""
    Console(width=120).print(cost.picture(report(line("p")), by_day=True))
    rows = [row.split() for row in capsys.readouterr().out.splitlines()]
    assert ["2026-01-30", "$5.00", *["$1.00"] * 5] in rows
    assert ["2026-01-31", "$0.00"] in rows


def test_a_runs_name_stands_on_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """A run's name fits one line of 80 columns, and kinds of cost without spending have no column."""
    name = "mnist-0123456789abcdef"
    Console(width=80).print(cost.picture(report({**line(name), "lease": 0.0, "unexplained": 0.0}, by="run")))
    said = capsys.readouterr().out
    assert name in said
    assert "lease" not in said.splitlines()[1]


def test_an_hour_that_is_asked_for_is_said_to_mean_its_day(
    server: Any, run: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    """Costs are stored by day, so for a time within a day the command says that the whole day counts."""
    for begin in ("2026-01-30T12:00:00+00:00", "2026-01-30T00:00:00+00:00"):
        server.says(f"/api/costs?{urlencode({'by': 'cluster', 'since': begin})}", report(line("p")))
        assert run("cost", "--by", "day", "--since", begin, "--url", server.url) == 0
    assert capsys.readouterr().err.count("these are all costs since 2026-01-30, 00:00 UTC") == 1


def test_a_run_that_never_had_a_node_cost_nothing() -> None:
    """A run canceled while it waited shows no cost, instead of an estimate."""
    history = [{"state": state, "at": "", "why": ""} for state in ("received", "queued", "canceled")]
    run = {"state": "canceled", "history": history, "greatest_cost": 3.0, "estimated_cost": None, "cost": None}
    assert of_run(run) == "none, it never had a node"
    assert "at most $3.00" in of_run({**run, "state": "queued"})


AMOUNTS = json.loads((Path(__file__).parent / "amounts.json").read_text("utf-8"))


@pytest.mark.parametrize(
    ("rule", "write"),
    [("dollars", dollars), ("share", share), ("saved", saved), ("metric", metric), ("duration", duration)],
)
def test_the_command_line_and_the_page_write_amounts_alike(rule: str, write: Callable[..., str]) -> None:
    """One list of examples tests both page/format.js, if there is a Node, and cli/show/costs.py."""
    given, told = zip(*AMOUNTS[rule], strict=True)
    asked = [amount if isinstance(amount, list) else [amount] for amount in given]
    assert tuple(write(*amount) for amount in asked) == told
    if node := shutil.which("node"):
        source = (ROOT / "page" / "format.js").as_uri()
        name = {"dollars": "money"}.get(rule, rule)
        calls = f"{json.dumps(asked)}.map((given) => f.{name}(...given))"
        program = f"const f = await import({source!r}); console.log(JSON.stringify({calls}))"
        answer = subprocess.run([node, "--input-type=module", "-e", program], capture_output=True, check=True)
        assert tuple(json.loads(answer.stdout)) == told


OWN_FORM = {
    "cli/show/costs.py": "the rules",
    "cli/show/tables.py": "the rule of metrics",
    "page/format.js": "the rules",
    "page/spark.jsx": "coordinates of a picture",
    "cli/show/png.py": "the axis of a picture",
    "cli/commands/predict.py": "a score, which the page does not show",
}


def test_amounts_are_written_by_these_rules_alone() -> None:
    """No other module of the command line or the page formats a percentage or dollars."""
    own = re.compile(
        r":[+,]?(?:\.\d+|,\.2f)?%\}|\}%[\"' ]|\$\{[^}]*:,?\.2f\}|toFixed\([12]\)|Math\.(?:round|floor)\([^)]*\* ?100\)"
    )
    sources = [*(ROOT / "cli").rglob("*.py"), *(ROOT / "page").glob("*.js*"), *(ROOT / "page" / "views").rglob("*.jsx")]
    found = [
        f"{name}: {line.strip()}"
        for name, source in ((path.relative_to(ROOT).as_posix(), path) for path in sources)
        if name not in OWN_FORM
        for line in source.read_text("utf-8").splitlines()
        if own.search(line) and "node_hours" not in line
    ]
    assert found == []

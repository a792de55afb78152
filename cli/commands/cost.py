"""The command cost."""

from __future__ import annotations

import csv
import sys
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group, RenderableType
from rich.table import Table

from ..results import prints
from ..session import Session, command, user_path
from ..show import people, png
from ..show.costs import dollars, saved, share
from ..terminal_text import Text, one_line
from . import options
from .values import moment

KINDS = ("training", "allocation", "idle", "lease", "unexplained")
DAY = "day"
BY = ("run", "cluster", "project", "owner", "grant", DAY)
NOBODY = {"run": "no run", "project": "no project", "owner": "nobody", "grant": "no grant", "cluster": ""}
By = Annotated[str, typer.Option(metavar="WHAT", help="One line for each run, cluster, project, owner, grant or day.")]
Csv = Annotated[bool, typer.Option("--csv", help="Print the lines as CSV.")]
Png = Annotated[
    Path | None,
    typer.Option("--png", metavar="FILE", help="Write a picture of the cost of each day. Needs the extra `png`."),
]


@command
@prints("GET costs")
def cost(session: Session, by: By = "project", since: options.Since = "", as_csv: Csv = False, to: Png = None) -> None:
    """Show what the nodes cost, and what is left of the budgets.

    Without --since, the costs are those of this month, by days of UTC. Idle: nodes left up after a run.
    Unexplained: nodes that belong to no run or lease.

    Example: trainyard cost --by run --since 7d
    """
    if by not in BY:
        raise typer.BadParameter(f"--by is {by!r}; choose from {', '.join(BY)}.")
    begin = moment(since) if since else ""
    costs = session.api.get("costs", by="cluster" if by == DAY else by, since=begin)
    if begin and datetime.fromisoformat(begin) != datetime.fromisoformat(costs["since"]):
        session.remark(
            f"Costs are kept by days of UTC: these are all costs since {costs['since'][:10]}, 00:00 UTC.", "yellow"
        )
    if to:
        png.draw_days(_every_day(costs["days"]), KINDS, f"cost by day, from {costs['since'][:10]}", user_path(to))
        session.remark(f"{to} is written.", "dim")
    if as_csv:
        (_write_days if by == DAY else _write_csv)(costs)
        for gap in _gaps(costs):
            session.remark(gap.plain, "red")
    else:
        session.print_result(costs, picture(costs, by_day=by == DAY))


def _every_day(days: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return all days from the first to the last, with zeros for days without nodes."""
    recorded_days = {date.fromisoformat(day["day"]): day for day in days}
    if not recorded_days:
        return []
    count = (max(recorded_days) - min(recorded_days)).days + 1
    each = [min(recorded_days) + timedelta(days=number) for number in range(count)]
    return [recorded_days.get(day) or {"day": day.isoformat(), **dict.fromkeys(KINDS, 0.0)} for day in each]


def _write_csv(costs: dict[str, Any]) -> None:
    columns = [name for name in costs["total"] if name not in ("key", "name")]
    named = ["name"] if costs["by"] in ("owner", "grant") else []
    writer = csv.writer(sys.stdout)
    writer.writerow([costs["by"], *named, *columns])
    for line in costs["lines"]:
        names = [_safe(line.get("name", "")) for _ in named]
        writer.writerow([_safe(line["key"]), *names, *(line[name] for name in columns)])


def _write_days(costs: dict[str, Any]) -> None:
    writer = csv.writer(sys.stdout)
    writer.writerow([DAY, "spent", *KINDS])
    for day in _every_day(costs["days"]):
        writer.writerow([day["day"], _spent(day), *(day[kind] for kind in KINDS)])


def _spent(day: dict[str, Any]) -> float:
    return float(sum(day[kind] for kind in KINDS))


def _safe(text: str) -> str:
    """Return the text with a leading `'` if a spreadsheet would otherwise read the text as a formula."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text


def picture(costs: dict[str, Any], by_day: bool = False) -> RenderableType:
    """Return the cost report as a table, with the savings and the budgets below."""
    heading = Text.assemble(("Cost", "bold"), (f"  from {costs['since'][:10]} to now, in dollars", "dim"))
    if not costs["lines"]:
        return Group(heading, Text("  no node was seen", "dim"), *_below(costs))
    return Group(heading, _days(costs) if by_day else _lines(costs), *_below(costs))


def _lines(costs: dict[str, Any]) -> Table:
    kinds = _kinds(costs["lines"])
    table = _table(costs["by"], "spent", *kinds, "node hours")
    for line in costs["lines"]:
        table.add_row(*_cells(line, kinds, people.payer(line, costs["lines"]) or NOBODY[costs["by"]]))
    if len(costs["lines"]) > 1:
        table.add_row(*_cells(costs["total"], kinds, "all"), style="bold")
    return table


def _days(costs: dict[str, Any]) -> Table:
    kinds = _kinds(costs["days"])
    table = _table(DAY, "spent", *kinds)
    for day in _every_day(costs["days"]):
        table.add_row(day["day"], dollars(_spent(day)), *(dollars(day[kind]) if day[kind] else "" for kind in kinds))
    return table


def _kinds(rows: list[dict[str, Any]]) -> list[str]:
    """Return the kinds of cost above zero. Leaving out the others leaves room for a run's name on a narrow terminal."""
    return [kind for kind in KINDS if any(row[kind] for row in rows)]


def _table(first: str, *numbers: str) -> Table:
    table = Table(box=None, pad_edge=True, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column(first, overflow="fold")
    for column in numbers:
        table.add_column(column, justify="right", no_wrap=True)
    return table


def _cells(line: dict[str, Any], kinds: list[str], name: str) -> list[str]:
    money = [dollars(line[kind]) if line[kind] else "" for kind in kinds]
    return [name, dollars(line["spent"]), *money, f"{line['node_hours']:,.2f}"]


def _below(costs: dict[str, Any]) -> list[Text]:
    total = costs["total"]
    lines = [Text(), *_gaps(costs)]
    if total["unpriced_hours"]:
        words = f"No price is known for {total['unpriced_hours']:.1f} node hours; the dollars do not include them."
        lines.append(Text(words, "yellow"))
    if unknown := total.get("unknown_hours"):  # an older deployment does not send this
        words = f"Nobody counted the nodes for some time: up to {unknown:.1f} further node hours are unknown."
        lines.append(Text(words, "yellow"))
    if total["spent"]:
        lines.append(Text(f"{share(total['idle_share'])} of it was idle, leased or unexplained.", "dim"))
    for name, words in (
        ("saved_always_on", "nodes that are always on"),
        ("saved_default", "Azure ML's default idle time"),
    ):
        if total["spent"] and total[name] is not None:
            lines.append(Text(f"{saved(total[name])} than with {words}.", "dim"))
    lines += [
        Text(f"{one_line(name)}: {dollars(value)} without any node.", "dim")
        for name, value in costs["standing"].items()
    ]
    return [*lines, *(_budget(budget) for budget in costs["budgets"])]


def _gaps(costs: dict[str, Any]) -> list[Text]:
    """Return a warning for each day with a cost outside of the numbers, and advice on recovering the cost."""
    return [
        Text(
            one_line(f"What {gap['cluster']} cost on {gap['day']} is missing: {gap['why']} {gap['advice']}"),
            "red",
        )
        for gap in costs.get("missing", ())  # an older deployment does not send this
    ]


def _budget(budget: dict[str, Any]) -> Text:
    name = one_line(budget["project"])
    of = f" of {dollars(budget['month'])} this month" if budget["month"] is not None else " this month"
    kept = f", {dollars(budget['kept_back'])} kept back for its runs" if budget["kept_back"] else ""
    each = f"; at most {dollars(budget['run'])} a run" if budget["run"] is not None else ""
    over = budget["reached_at"] is not None
    return Text(f"Budget of {name}: {dollars(budget['spent'])}{of}{kept}{each}.", "red" if over else "")

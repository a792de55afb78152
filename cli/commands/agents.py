"""The commands for agents and for continuous integration: mcp and report."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, TypedDict

import typer
from typer import Argument, Option

from ..api import mcp_bridge
from ..api.client import Api
from ..errors import NotFound
from ..results import prints
from ..session import Session, command, user_path
from ..show.report_markdown import report as markdown

Newest = Annotated[str, Argument(metavar="[RUN]", help="Whatever names a run. Default: the newest that you see.")]
Against = Annotated[str, Option("--against", metavar="MODEL@ALIAS", help="The champion: digits@production.")]
Output = Annotated[Path | None, Option("--output", "-o", metavar="FILE", help="Write the comment into this file.")]


class Report(TypedDict):
    """The output of `report`. `champion` is the version that the run was compared with, or null."""

    run: str
    state: str
    champion: int | None
    markdown: str


@command
@prints("POST mcp", each_line=True)
def mcp(session: Session) -> None:
    """Offer the tools for agents on standard input and output.

    A program that starts this command sends messages of the Model Context Protocol, one on each line.

    Example: trainyard mcp
    """
    mcp_bridge.serve(sys.stdin.buffer, session.print_json_line, session.api)


@command
@prints(Report)
def report(session: Session, run: Newest = "", against: Against = "", output: Output = None) -> None:
    """Print a run as a comment in Markdown: its metrics beside the champion's, cost, diagnosis, and a picture.

    With the token of a grant, the newest run is the newest of the grant.

    Example: trainyard report --against digits@production --output comment.md
    """
    record = session.api.get("runs", run or _newest(session.api))
    champion = _champion(session.api, against) if against else None
    text = markdown(record, champion, _points(session.api, record))
    if output:
        user_path(output).write_text(text, "utf-8")
    made = Report(
        run=record["run"], state=record["state"], champion=champion["number"] if champion else None, markdown=text
    )
    session.print_result(made, f"Wrote {output}." if output else text)


def _newest(api: Api) -> str:
    runs = api.get("runs", limit=1)["runs"]
    if not runs:
        raise NotFound("There is no run yet.")
    return str(runs[0]["run"])


def _champion(api: Api, against: str) -> dict[str, Any] | None:
    """Return the version, or None if there is no such model or alias yet."""
    model, _, alias = against.partition("@")
    if not model or not alias:
        raise typer.BadParameter(f"{against!r} is not a champion; write MODEL@ALIAS.", param_hint="--against")
    try:
        return {**api.get("models", model, "versions", alias), "model": model}
    except NotFound:
        return None


def _points(api: Api, run: dict[str, Any]) -> list[tuple[float, float]]:
    if not run["best"]:
        return []
    metric = run["best"]["metric"]
    series = api.get("curves", runs=run["run"], name=metric, points=100)["runs"][run["run"]]
    return [(step, value) for step, value, _ in series.get(metric, []) if step is not None and value is not None]

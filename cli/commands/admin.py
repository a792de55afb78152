"""The commands admin replay, admin register and admin smoke."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table
from typer import Option

from ..api import replay as replaying
from ..files import drop_upload
from ..nodes import smoke as smoking
from ..results import SmokeCheck, prints
from ..session import Session, command_of
from ..setup import tab_completion
from ..show.tables import counted
from ..terminal_text import one_line
from . import options

Queue = Annotated[str, Option(metavar="NAME", help="Only this queue. Default: all.")]
Cluster = Annotated[
    str,
    Option(
        "--cluster",
        metavar="NAME",
        help="The cluster for the jobs; it needs four nodes.",
        autocompletion=tab_completion.clusters,
    ),
]
Route = Annotated[
    str,
    Option(
        "--route",
        metavar="NAME",
        help="The route for the data; its trainer must be mnist.",
        autocompletion=tab_completion.routes,
    ),
]
Patience = Annotated[float, Option(min=10, metavar="SECONDS", help="Seconds to wait for each run.")]
Markdown = Annotated[bool, Option("--markdown", help="Print the table as Markdown, to paste it into an issue.")]
Count = Annotated[bool, Option("--dry-run", help="Only count.")]


@command_of("admin")
@prints(replaying.Replayed)
def replay(
    session: Session,
    queue: Queue = "",
    dry_run: Count = False,
) -> None:
    """Move poison messages and dead letters back to their queues.

    Fix the cause first; `status` and the log of the app show it. A dead letter that belongs to no queue stays, and
    the command names it.

    Example: trainyard admin replay --queue drop-events
    """
    done = replaying.replay(session.api, queue, dry_run)
    verb = "would go back" if dry_run else "went back"
    lines = [
        f"{name}: {counted(moved.poison, 'poison message')} and {counted(moved.dead_letters, 'dead letter')} {verb}"
        for name, moved in done.queues.items()
        if moved.poison or moved.dead_letters
    ]
    session.print_result(done.as_json(), "\n".join(lines) or "There is nothing to replay.")
    for name in done.unreadable:
        session.remark(f"Left: deadletter/{one_line(name)} does not belong to any of these queues.", "yellow")


@command_of("admin")
@prints("POST register")
def register(session: Session) -> None:
    """Register the trainers' code and environment in Azure ML, and check the routes.

    The app does this automatically within minutes of a deployment. The exit status is 1 if a route can't work, for
    example because its cluster does not exist.

    Example: trainyard admin register
    """
    answer = session.api.post("register")
    broken = [route for route in answer["routes"] if route["problem"]]
    lines = [f"code         {answer['code']}", f"environment  {answer['environment']}"]
    lines += [
        f"route {route['route']}: {route['problem'] or 'ready on ' + route['cluster']}" for route in answer["routes"]
    ]
    session.print_result(answer, "\n".join(one_line(line) for line in lines))
    if broken:
        raise typer.Exit(1)


@command_of("admin")
@prints(list[SmokeCheck])
def smoke(
    session: Session,
    cluster: Cluster = "cpu-cluster",
    route: Route = "mnist",
    patience: Patience = 1800.0,
    account_url: options.AccountUrl = "",
    markdown: Markdown = False,
) -> None:
    """Check a deployment: everything that can't be proven without Azure, one check after the other.

    The command drops a small data set of noise on a route of the trainer mnist and follows the run to its archive.
    It also runs four small jobs on four nodes, which check tokens, mounts, traffic between jobs, events, node
    counts, logs, and announced evictions. The exit status is 1 if a check failed. The cost is some minutes of four
    nodes.

    Example: trainyard admin smoke --markdown
    """
    with drop_upload.opened(session.profile, account_url) as container, drop_upload.translated():
        local = bool(session.profile.connection_string) and not account_url
        stand_in = session.profile if local else None
        tried = smoking.Smoke(session.api, cluster, route, patience, session.remark, stand_in)
        checks = tried.run(container)
    results: list[SmokeCheck] = [
        {"check": check.name, "result": check.result, "detail": check.detail} for check in checks
    ]
    session.print_result(results, smoking.markdown(checks) if markdown else _table(checks))
    if any(check.result == smoking.FAILED for check in checks):
        raise typer.Exit(1)


def _table(checks: list[smoking.Check]) -> Table:
    table = Table("check", "result", "what was seen", box=None)
    for check in checks:
        table.add_row(*(one_line(text) for text in (check.name, check.result, check.detail)))
    return table

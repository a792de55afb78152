"""The commands schedule add, list, log, pause, resume and remove."""

from __future__ import annotations

from typing import Annotated, Any

import typer
import typer.core
from typer import Argument, Option

from .. import show
from ..api import run_list
from ..results import prints
from ..session import Session, app, command_of
from ..setup import tab_completion
from . import options
from .runs import requested

Cron = Annotated[
    str, Option("--cron", metavar="CRON", help='The times: minute, hour, day, month, weekday, such as "0 6 * * 1".')
]
Zone = Annotated[str, Option("--timezone", metavar="ZONE", help="The time zone, such as Europe/Berlin.")]
Route = Annotated[
    str, Option("--route", metavar="NAME", help="Instead of --cron: the route whose new files are counted.")
]
NewFiles = Annotated[
    int,
    Option("--new-files", min=0, metavar="N", help="Start a run after this many new files in the drops of the route."),
]
CatchUp = Annotated[
    str, Option("--catch-up", metavar="RULE", help="What to do with missed firings: skip, latest or all.")
]
Overlap = Annotated[
    str, Option("--overlap", metavar="RULE", help="If the previous run has not ended: skip, allow, or replace it.")
]
DryRun = Annotated[
    bool, Option("--dry-run", help="Only show the next firings, and what would keep the run from starting.")
]
Words = Annotated[list[str], Argument(metavar="submit ...", help="The submission, written as for `submit`.")]
Name = Annotated[
    str,
    Argument(metavar="ID", help="A schedule, as `schedule list` shows it.", autocompletion=tab_completion.schedules),
]


WHEN = ("--cron", "--timezone", "--route", "--new-files", "--catch-up", "--overlap")
CATCH_UP, OVERLAP = ("skip", "latest", "all"), ("skip", "allow", "replace")


class ScheduleCommand(typer.core.TyperCommand):
    """The command `schedule add`. Its own options end at the begin of the submission."""

    allow_interspersed_args = False


@command_of("schedule", ScheduleCommand)
@prints("POST schedules")
def schedule_add(
    session: Session,
    words: Words,
    cron: Cron = "",
    timezone: Zone = "UTC",
    route: Route = "",
    new_files: NewFiles = 0,
    catch_up: CatchUp = "latest",
    overlap: Overlap = "skip",
    dry_run: DryRun = False,
) -> None:
    """Start a run again and again: at fixed times, or when enough new files have arrived in a route.

    Write the submission after the options, as you would for `submit`. Each firing starts one run, exactly once.
    --catch-up decides about a firing that was missed by more than ten minutes, --overlap about one whose previous
    run has not ended.

    Names with @ are resolved each time the schedule fires: mnist@latest, churn@production, and for --data also
    ROUTE@new, the newest drop since the previous run, or ROUTE@all-new, the folder of the route, with all new drops
    in the parameter new_drops.

    Example: trainyard schedule add --cron "0 6 * * 1" --timezone Europe/Berlin submit mnist --data drops/mnist/digits-1
    """
    _check_order(words)
    _check_when(cron, route, new_files)
    _check_rule("--catch-up", catch_up, CATCH_UP)
    _check_rule("--overlap", overlap, OVERLAP)
    run, common = _submission(session, words)
    session.as_json = session.as_json or common["as_json"]
    body: dict[str, Any] = {"run": run, "catch_up": catch_up, "overlap": overlap}
    body |= {"cron": cron, "timezone": timezone} if cron else {"route": route, "new_files": new_files}
    if dry_run or common["dry_run"]:
        answer = session.api.post("schedules", body=body, dry_run=True)
        session.print_result(answer, show.schedules.instants(answer))
        return
    made = session.api.post("schedules", body=body)
    session.print_result(made, made["id"])
    first = (
        f"first at {show.tables.clock(made['next_at'])} by this machine's clock"
        if made["next_at"]
        else f"after {new_files:,} new files in {route}"
    )
    session.remark(f"{first}; see it: {session.program} schedule log {made['id']}", "dim")
    for reason in made.get("reasons", []):
        session.remark(f"It could not start now: {reason['message']}", "yellow")


@command_of("schedule")
@prints("GET schedules")
def schedule_list(session: Session, mine: options.Mine = False) -> None:
    """List the schedules, with their next firings.

    Example: trainyard schedule list --mine
    """
    schedules: Any = session.api.get("schedules")
    schedules = run_list.own_rows(session.api, schedules) if mine else schedules
    session.print_result(schedules, show.schedules.many(schedules))


@command_of("schedule")
@prints("GET schedules/{schedule}/firings")
def schedule_log(session: Session, schedule: Name) -> None:
    """Show the results of the newest firings of a schedule.

    Example: trainyard schedule log s-0123456789abcdef
    """
    firings = session.api.get("schedules", schedule, "firings")
    session.print_result(firings, show.schedules.firings(firings))


@command_of("schedule")
@prints("POST schedules/{schedule}/pause")
def schedule_pause(session: Session, schedule: Name) -> None:
    """Start no further runs until the schedule is resumed.

    Example: trainyard schedule pause s-0123456789abcdef
    """
    session.print_result(session.api.post("schedules", schedule, "pause"), f"{schedule} is paused.")


@command_of("schedule")
@prints("POST schedules/{schedule}/resume")
def schedule_resume(session: Session, schedule: Name) -> None:
    """Resume from now. Firings missed while paused are skipped.

    Example: trainyard schedule resume s-0123456789abcdef
    """
    answer = session.api.post("schedules", schedule, "resume")
    session.print_result(
        answer, f"{schedule} continues" + (f" at {show.tables.clock(answer['next_at'])}." if answer["next_at"] else ".")
    )


@command_of("schedule")
@prints("DELETE schedules/{schedule}")
def schedule_remove(session: Session, schedule: Name) -> None:
    """Remove a schedule. Runs that it started continue.

    Example: trainyard schedule remove s-0123456789abcdef
    """
    session.print_result(session.api.delete("schedules", schedule), f"{schedule} is gone.")


def _check_order(words: list[str]) -> None:
    """Raise BadParameter unless the words begin with `submit` and contain none of the schedule's own options."""
    own = [word for word in words if word.partition("=")[0] in WHEN]
    if words[0] != "submit" or own:
        wrong = f"{own[0]} is before `submit`" if own else f"{words[0]!r} is not `submit`"
        raise typer.BadParameter(f'{wrong}: schedule add --cron "0 6 * * 1" submit mnist --data ...')


def _check_when(cron: str, route: str, new_files: int) -> None:
    """Raise BadParameter unless exactly one trigger is given completely: --cron, or --route with --new-files."""
    if cron and (route or new_files):
        raise typer.BadParameter("Give --cron, or --route with --new-files, not both.")
    if not cron and not (route and new_files):
        raise typer.BadParameter(
            'Give the times: --cron "0 6 * * 1", or --route NAME with --new-files N, the number that starts a run.'
        )


def _check_rule(option: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise typer.BadParameter(f"{option} is {value!r}; choose from {', '.join(choices)}.")


def _submission(session: Session, words: list[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the request body of the run in these words, and the parsed options of `submit`."""
    group: Any = typer.main.get_command(app)
    options = group.commands["submit"].make_context("submit", words[1:]).params
    if options["following"]:
        raise typer.BadParameter("There is no run to follow yet; `runs` and `schedule log` show the runs.")
    return requested(session, options, later=True), options

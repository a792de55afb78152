"""The commands rm and du."""

from __future__ import annotations

from typing import Annotated, Any

from rich.prompt import Confirm
from typer import Argument, Option

from .. import show
from ..api.run_names import drop_or_run
from ..errors import CliError, NotFound
from ..results import prints
from ..session import Session, command
from ..setup import tab_completion

Things = Annotated[
    list[str],
    Argument(metavar="RUN|DROP", help="Runs, or drops as route/name.", autocompletion=tab_completion.runs_or_drops),
]
Yes = Annotated[bool, Option("--yes", "-y", help="Do not ask.")]
Log = Annotated[bool, Option("--log", help="Instead, show what was deleted, by whom and when.")]
Soon = Annotated[bool, Option("--soon", help="Instead, show what retention will delete within a week.")]


@command
@prints("GET removals")
def rm(session: Session, things: Things, yes: Yes = False) -> None:
    """Delete a drop, or the archive, checkpoints, logs and files of a run.

    Trainyard keeps a record of who deleted what and when (`du --log`), and the record of the run. It refuses to
    delete a run that has not ended or that another run continues, and a drop that a run trains on.

    Example: trainyard rm mnist-0123456789abcdef mnist/digits-1 --yes
    """
    targets = [drop_or_run(session.api, name) for name in things]
    if yes:
        _check_whole(things, [drop or run for drop, run in targets])
    elif not _agreed(session, [drop or run for drop, run in targets]):
        raise CliError("Nothing was removed.", "stopped")
    done = []
    for drop, run in targets:
        where = ("drops", *drop.split("/", 1)) if drop else ("runs", run)
        done.append(session.api.post(*where, "remove"))
    session.print_result(done, "\n".join(f"{each['what']} {each['name']} is being deleted." for each in done))


@command
@prints("GET usage", "GET removals", "GET retention")
def du(session: Session, log: Log = False, soon: Soon = False) -> None:
    """Show what uses storage: drops, archives, checkpoints, and outputs that jobs left in their own folders.

    Example: trainyard du
    """
    if log or soon:
        rows: list[dict[str, Any]] = session.api.get("removals" if log else "retention")
        session.print_result(rows, show.storage.removed(rows) if log else show.storage.going(rows))
        return
    space = session.api.get("usage")
    session.print_result(space, show.storage.usage(space))


def _check_whole(names: list[str], targets: list[str]) -> None:
    """Raise NotFound for a prefix of a name. The item that the prefix was meant for may be gone, and the prefix may
    now match another item."""
    for name, target in zip(names, targets, strict=True):
        if "@" not in name and name.removeprefix("drops/").strip("/") != target:
            raise NotFound(f"Nothing has the name {name!r}. With --yes, give the complete name, such as {target!r}.")


def _agreed(session: Session, things: list[str]) -> bool:
    """Return whether the user confirms the deletion. Raises CliError if nobody can answer; then --yes is needed."""
    if not session.err.is_terminal or session.as_json:
        raise CliError(f"This deletes {', '.join(things)} permanently. Add --yes to confirm.", "unconfirmed")
    return Confirm.ask(f"Delete {', '.join(things)} permanently?", console=session.err, default=False)

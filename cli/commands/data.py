"""The commands data log, data show, data diff and data files."""

from __future__ import annotations

from typing import Annotated, Any

from rich.console import Group, RenderableType
from typer import Argument

from .. import show
from ..api.run_names import data_ref, drop_name
from ..errors import CliError
from ..results import prints
from ..session import Session, command_of
from ..setup import tab_completion

Drop = Annotated[str, Argument(metavar="DROP", help="A drop, as route/name.", autocompletion=tab_completion.drops)]
Ref = Annotated[
    str,
    Argument(
        metavar="DATA",
        help="A drop as route/name, route/name@2 for a generation, @now, or a run.",
        autocompletion=tab_completion.runs_or_drops,
    ),
]


@command_of("data")
@prints("GET drops/{route}/{name}/generations")
def data_log(session: Session, drop: Drop) -> None:
    """List the generations of a drop: the content at each closing, and the run that trained on it.

    Example: trainyard data log mnist/digits-1
    """
    route, _, name = drop_name(session.api, drop).partition("/")
    generations = session.api.get("drops", route, name, "generations")
    session.print_result(generations, show.drops.generations(f"{route}/{name}", generations))


@command_of("data")
@prints("GET data/card")
def data_show(session: Session, data: Ref) -> None:
    """Show the data card of a generation or of a run: what a check said about the data, and the classes as bars.

    Example: trainyard data show mnist/digits-1
    """
    said: dict[str, Any] = session.api.get("data", "card", of=data_ref(session.api, data))
    reads = "" if said["of"] in said["generation"] else f", which reads {said['generation']}"
    session.print_result(said, show.data_cards.check(said, said["of"] + reads))


@command_of("data")
@prints("GET data/diff")
def data_diff(session: Session, a: Ref, b: Ref) -> None:
    """Show which files were added, changed and removed between two generations.

    You can also name a run instead of its data. Where both have a data card, the changes of counts by split and
    class follow.

    Example: trainyard data diff mnist/digits-1@1 mnist/digits-1@2
    """
    a, b = data_ref(session.api, a), data_ref(session.api, b)
    difference: dict[str, Any] = session.api.get("data", "diff", a=a, b=b)
    session.print_result(difference, Group(show.drops.difference(difference), _of_cards(session, a, b)))


def _of_cards(session: Session, a: str, b: str) -> RenderableType:
    """Return the differences of the two data cards; nothing without two cards."""
    try:
        return show.data_cards.changes(session.api.get("data", "card", "diff", a=a, b=b))
    except CliError:
        return Group()


@command_of("data")
@prints("GET data/files")
def data_files(session: Session, data: Ref) -> None:
    """List the files of a generation, of a drop as it is now, or of a run.

    Example: trainyard data files mnist/digits-1@now
    """
    data = data_ref(session.api, data)
    listing: dict[str, Any] = session.api.get("data", "files", of=data)
    rows = page = listing["files"]
    while page and len(rows) < listing["count"]:
        page = session.api.get("data", "files", of=data, offset=len(rows))["files"]
        rows = rows + page
    session.print_result(listing | {"files": rows}, show.drops.files(listing | {"files": rows}))

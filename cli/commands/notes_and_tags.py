"""The commands note and tag."""

from __future__ import annotations

from typing import Annotated

import typer
from typer import Argument, Option

from ..files.folder_job import TAG, TAG_RULE
from ..results import prints
from ..session import Session, command
from ..show.tables import counted
from . import options

NoteText = Annotated[str, Argument(metavar="TEXT", help="The text, up to 500 characters.")]
Tags = Annotated[list[str] | None, Argument(metavar="NAME=VALUE", help="Tags to set: team=vision.")]
Remove = Annotated[list[str] | None, Option("--remove", metavar="NAME", help="A tag to remove. Repeat it for more.")]


@command
@prints("POST runs/{run}/notes")
def note(session: Session, run: options.Run, text: NoteText) -> None:
    """Write a note on a run; `show` prints the notes with their authors and times.

    Example: trainyard note mnist@latest "the learning rate was too high"
    """
    if not text.strip():
        raise typer.BadParameter("the note is empty; write a text of up to 500 characters.", param_hint="TEXT")
    answer = session.api.post("runs", run, "notes", body={"text": text})
    session.print_result(answer, f"{answer['run']} has {counted(len(answer['notes']), 'note')}.")


@command
@prints("POST runs/{run}/tags")
def tag(session: Session, run: options.Run, tags: Tags = None, remove: Remove = None) -> None:
    """Set or remove tags of a run; `runs --where` finds runs by tags.

    Example: trainyard tag mnist@latest team=vision --remove draft
    """
    if not tags and not remove:
        raise typer.BadParameter("give tags, NAME=VALUE, or --remove NAME.")
    answer = session.api.post("runs", run, "tags", body={"set": pairs(tags), "remove": remove or []})
    words = ", ".join(f"{name}={value}" for name, value in sorted(answer["tags"].items()))
    session.print_result(answer, f"{answer['run']}: {words or 'no tags'}")


def pairs(texts: list[str] | None) -> dict[str, str]:
    """Parse NAME=VALUE pairs: `team=vision` becomes {"team": "vision"}. Raises BadParameter for text that is not a
    pair."""
    values = {}
    for text in texts or []:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise typer.BadParameter(f"a tag is NAME=VALUE, such as team=vision; {text!r} has no value.")
        if not TAG.fullmatch(name):
            raise typer.BadParameter(f"the name of a tag can't be {name!r}; {TAG_RULE}.")
        values[name] = value
    return values

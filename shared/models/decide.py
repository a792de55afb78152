"""Compute the new record of a model, and its new history lines, for a promotion, a move and an undo. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from shared.kernel.errors import Conflict, NotFound
from shared.kernel.person import NOBODY, Person
from shared.models.model import Alias, Change, ChangeKind, Model, Version

MOST_EARLIER = 50  # versions to which repeated undos can move an alias back


@dataclass(frozen=True)
class ChangeRequest:
    """The person who changes a model, the time, and the reason. `by_rule`: the app itself, by the rule of a route."""

    at: datetime
    by: Person = NOBODY
    why: str = ""
    by_rule: bool = False


Changed = tuple[Model, list[Change]]


class OtherChampion(Exception):
    """The alias has moved since the champion was judged, or somebody has decided on the run."""


def with_version(model: Model, number: int, asked: ChangeRequest, goals: Mapping[str, str] | None = None) -> Changed:
    """Return the model with a next version. An existing goal stays."""
    model = replace(model, latest=number, goals={**(goals or {}), **model.goals})
    after, change = _with_change(model, asked, ChangeKind.VERSION, after=number)
    return after, [change]


def pointed(model: Model, number: int, alias: str, asked: ChangeRequest) -> Changed:
    """Return the model with the alias on this version. An alias already on this version stays unchanged."""
    old = model.aliases.get(alias)
    if old and old.number == number:
        return model, []
    earlier = (*old.earlier, old.number)[-MOST_EARLIER:] if old else ()
    moved = Alias(number, asked.at, asked.by.name, asked.by.id, asked.why, earlier)
    before = old.number if old else 0
    after, change = _with_change(_with(model, alias, moved), asked, ChangeKind.ALIAS, alias, before, number)
    return after, [change]


def pointed_from(model: Model, number: int, alias: str, judged: Alias | None, asked: ChangeRequest) -> Changed:
    """Return the model with the alias on this version. Raises OtherChampion if the alias moved since the judgment."""
    if model.aliases.get(alias) != judged:
        raise OtherChampion
    return pointed(model, number, alias, asked)


def kept(model: Model, alias: str, judged: Alias | None, run: str, asked: ChangeRequest) -> Changed:
    """Return the model with a history line: a run was judged, and the alias stayed. Raises OtherChampion as above."""
    if model.aliases.get(alias) != judged:
        raise OtherChampion
    number = judged.number if judged else 0
    after, change = _with_change(model, asked, ChangeKind.LOST, alias, number, number)
    return after, [replace(change, run=run)]


def undone(model: Model, alias: str, asked: ChangeRequest) -> Changed:
    """Return the model with the alias on the previous version, or without the alias if no previous version exists.
    Raises NotFound.
    """
    if not (old := model.aliases.get(alias)):
        raise NotFound(
            f"Model {model.name} has no alias {alias!r}. It has: {', '.join(sorted(model.aliases)) or 'none'}."
        )
    number = old.earlier[-1] if old.earlier else 0
    moved = Alias(number, asked.at, asked.by.name, asked.by.id, asked.why, old.earlier[:-1]) if number else None
    after, change = _with_change(_with(model, alias, moved), asked, ChangeKind.UNDO, alias, old.number, number)
    return after, [change]


def without(model: Model, version: Version, asked: ChangeRequest) -> Changed:
    """Return the model after a version is released. Raises Conflict while an alias points at the version."""
    if names := sorted(name for name, alias in model.aliases.items() if alias.number == version.number):
        raise Conflict(
            f"{version} is {model.name}@{names[0]}. Move the alias first: promote {model.name}/N --as {names[0]}.",
            "named",
        )
    aliases = {
        name: _going_back_to(alias, tuple(n for n in alias.earlier if n != version.number))
        for name, alias in model.aliases.items()
    }
    after, change = _with_change(replace(model, aliases=aliases), asked, ChangeKind.LET_GO, before=version.number)
    return after, [change]


def signed_again(model: Model, version: Version, asked: ChangeRequest) -> Changed:
    """Return the model with a history line: a version got a new signature."""
    after, change = _with_change(model, asked, ChangeKind.SIGNED, before=version.number, after=version.number)
    return after, [change]


def _going_back_to(alias: Alias, earlier: tuple[int, ...]) -> Alias:
    return Alias(alias.number, alias.at, alias.by, alias.by_id, alias.why, earlier)


def _with(model: Model, name: str, alias: Alias | None) -> Model:
    others = {each: value for each, value in model.aliases.items() if each != name}
    return replace(model, aliases={**others, name: alias} if alias else others)


def _with_change(
    model: Model, asked: ChangeRequest, what: ChangeKind, alias: str = "", before: int = 0, after: int = 0
) -> tuple[Model, Change]:
    order = model.changes + 1
    line = Change(model.name, order, what, asked.at, alias, before, after, asked.by.name, asked.by.id, asked.why)
    return replace(model, changes=order), line

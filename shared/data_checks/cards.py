"""Data cards over HTTP: the result of a check for the data of a generation or a run, and the differences of two
cards.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from shared.data_checks.at_sealing import kept
from shared.data_checks.model import CheckVerdict, DataCheck
from shared.drops.diff import read_ref
from shared.drops.model import Generation
from shared.drops.ports import DropPorts, Drops
from shared.drops.versions import generations
from shared.jobs.route import Routes
from shared.kernel.drop_key import DropKey
from shared.kernel.errors import Impossible, NotFound
from shared.runs.names import RUN_NAME

Json = dict[str, Any]
Ref = Annotated[
    str,
    Meta(min_length=1, max_length=340, description="<route>/<name>, <route>/<name>@<generation>, or a run."),
]


class CardQuery(Struct):
    of: Ref


class CardsQuery(Struct):
    a: Ref
    b: Ref


class CardAnswer(Struct):
    of: str
    generation: Annotated[str, Meta(description="What was checked: the generation of a drop, which a run reads.")]
    verdict: CheckVerdict
    refusals: list[str]
    warnings: list[str]
    notes: list[str]
    card: Annotated[
        dict[str, Any],
        Meta(description="Counts by split and class, sizes, dimensions, duplicates, and how much was read."),
    ]


class CardChanges(Struct):
    a: str
    b: str
    changes: Annotated[list[str], Meta(description="One sentence for each difference, in the terms of the cards.")]


def get_card(ports: DropPorts, query: CardQuery) -> Annotated[Json, CardAnswer]:
    return {**msgspec.to_builtins(_check_of(ports, query.of)), "of": query.of}


def diff_cards(ports: DropPorts, query: CardsQuery) -> Annotated[Json, CardChanges]:
    from trainers.data_checks.card import Card, changes

    known = {field.name for field in fields(Card)}
    before, after = (
        Card(**{key: value for key, value in _check_of(ports, ref).card.items() if key in known})
        for ref in (query.a, query.b)
    )
    return {"a": query.a, "b": query.b, "changes": changes(before, after)}


def _check_of(ports: DropPorts, ref: str) -> DataCheck:
    """Return the check of the generation or run that `ref` names. Raises NotFound if no card is stored."""
    of_run = RUN_NAME.fullmatch(ref)
    said = ports.runs.get(ref).value.feature(DataCheck) if of_run else _of_generation(ports, ref)
    if said is None:
        raise NotFound(f"No data card of {ref} is kept: its data was not checked, or the card was removed.")
    return said


def _of_generation(ports: DropPorts, ref: str) -> DataCheck | None:
    key, generation = generation_named(ports.drops, ports.routes, ref)
    said = kept(ports.blobs, generation.folder)
    return said and replace(said, generation=f"{key}@{generation.number}")


def generation_named(drops: Drops, routes: Routes, ref: str) -> tuple[DropKey, Generation]:
    """Return the drop and the closed generation that `ref` names. Raises NotFound, or Impossible for an open drop."""
    data = read_ref(ref)
    if data.now:
        raise Impossible(
            "A card belongs to a closed generation. Name one, or check the folder: drop --check.", "bad_data"
        )
    closed = generations(drops, routes, data.key)
    chosen = next((each for each in closed if data.number in (0, each.number)), None)
    if chosen is None:
        numbers = ", ".join(str(each.number) for each in closed[:20]) or "none"
        raise NotFound(f"Drop {data.key} has no generation {data.number or ''}; it has: {numbers}.".replace("  ", " "))
    return data.key, chosen

"""People who promote runs, move an alias, undo that and release versions; and the rules for a model."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from shared.kernel.person import Person
from shared.kernel.places import OUTPUT_CONTAINER
from shared.models.decide import ChangeRequest
from shared.models.model import ChangeKind
from shared.models.ports import Write
from shared.models.promote import let_go, point, promote_run, sign_again, undo
from shared.models.signature import SIGNATURE, read_signature
from shared.runs.results.outputs import archive_folder
from tests.fakes.models import FakeModels
from tests.fakes.world import World
from tests.simulation.scheduler import Violation

MODEL, ALIASES = "churn", ("production", "staging")


Wish = tuple[str, Callable[[], object]]


def somebodys_wish(simulation: Any) -> Wish | None:
    """Return what a person does next with the model; None while there is nothing to promote."""
    random, world = simulation.random, simulation.world
    archived = [name for name, row in world.runs.rows.items() if row.value.archive.at]
    if not archived:
        return None
    who = Person(random.choice(("ann", "bob")))
    asked, alias = ChangeRequest(world.clock(), who, f"wish {simulation.scheduler.steps}"), random.choice(ALIASES)
    number = random.randrange(1, 4)
    wishes: list[Wish] = [
        *[("promote", partial(promote_run, simulation.system, random.choice(archived), MODEL, alias, asked, True))] * 4,
        *[("point", partial(point, simulation.system, MODEL, number, alias, asked))] * 2,
        *[("undo", partial(undo, simulation.system, MODEL, alias, asked))] * 2,
        ("let_go", partial(let_go, simulation.system.models, simulation.system.clock, MODEL, number, asked)),
        ("sign_again", partial(sign_again, simulation.system, MODEL, number, asked)),
    ]
    chosen: Wish = random.choice(wishes)
    return chosen


def check_history(models: FakeModels, write: Write) -> None:
    """Check that replaying the history gives the current versions and aliases: of two concurrent requests one is
    first, and the other sees its result. A number is given once, a run is one version, and no alias points at a
    missing version."""
    model = models.rows[write.model.name].value
    lines = sorted(models.history(model.name, 10_000), key=lambda line: line.order)
    _require([line.order for line in lines] == [*range(1, model.changes + 1)], "lines of the history are missing")
    latest, there, aliases = 0, set[int](), dict[str, int]()
    for line in lines:
        if line.what is ChangeKind.VERSION:
            latest += 1
            there.add(latest)
            _require(line.after == latest, f"version {line.after} was made after {latest - 1}")
        elif line.what is ChangeKind.LET_GO:
            _require(line.before in there - {*aliases.values()}, f"version {line.before} was let go, and was needed")
            there.remove(line.before)
        elif line.what is ChangeKind.LOST:
            _require(line.before == line.after == aliases.get(line.alias, 0), f"{line.alias} is not at {line.after}")
        elif line.what is ChangeKind.SIGNED:
            _require(line.before == line.after and line.after in there, f"version {line.after} was signed, and is gone")
        else:
            before = aliases.pop(line.alias, 0)
            _require(line.before == before, f"{line.alias} moved from {line.before}, where it was not: {before}")
            if line.after:
                _require(line.after in there, f"{line.alias} points at {line.after}, which is not there")
                aliases[line.alias] = line.after
    _require(aliases == {name: at.number for name, at in model.aliases.items()}, f"the history says {aliases}: {model}")
    kept = [version for version in models.kept() if version.model == model.name]
    _require({version.number for version in kept} == there, f"the history says {there}: {kept}")
    _require(len({version.run for version in kept}) == len(kept), f"a run is two versions: {kept}")


def check_proofs(world: World) -> None:
    """Check that every kept version has its proof: a signature with its number, and each file that the proof names."""
    for version in world.models.kept():
        there = world.blobs.containers[OUTPUT_CONTAINER]
        _require(f"{version.proof}/{SIGNATURE}" in there, f"{version} has no signature")
        files, _ = read_signature(there[f"{version.proof}/{SIGNATURE}"].data)
        archive = archive_folder(world.runs.rows[version.run].value)
        for file in files:
            _require({f"{archive}/{file}", f"{version.proof}/{file}"} & there.keys(), f"{version} lacks {file}")


def _require(holds: object, otherwise: str) -> None:
    if not holds:
        raise Violation(otherwise)

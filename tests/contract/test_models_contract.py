"""The contract of shared.models.ports.Models, tested on the fake and on Azure Table Storage."""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from shared.adapters.storage.account import StorageClients
from shared.adapters.tables.model_table import TableModels
from shared.kernel.errors import Changed
from shared.kernel.person import Person
from shared.models.decide import ChangeRequest, pointed, with_version
from shared.models.model import Model, Version
from shared.models.ports import Models, Write
from shared.models.signing_key import SigningKey
from tests.fakes.ports import FakeModels

NOW = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
ASKED = ChangeRequest(NOW, Person("ann", "id"), "why")


@pytest.fixture(params=["fake", "tables", "own_tables"])
def models(request: pytest.FixtureRequest) -> Models:
    if request.param == "fake":
        return FakeModels()
    tables: StorageClients = request.getfixturevalue(request.param)
    return TableModels(tables.table)


def version(number: int, model: str = "churn") -> Version:
    return Version(
        model, number, f"run-{number}", NOW, "e/run/proof/t", "d" * 64, "k" * 64, metrics={"auc": 0.5}, reads=("a/b",)
    )


def made(models: Models, number: int, alias: str = "") -> None:
    """Write the next version and move the alias to it."""
    stored = models.get("churn")
    model, changes = with_version(stored.value if stored else Model("churn"), number, ASKED)
    if alias:
        model, moves = pointed(model, number, alias, ASKED)
        changes += moves
    models.write(stored, Write(model, changes, version(number)))


def test_what_is_written_is_read_again(models: Models) -> None:
    """A model comes back with its aliases, versions and history, newest first."""
    assert (models.get("churn"), models.all(), models.versions("churn"), models.history("churn")) == (None, [], [], [])
    for number in range(1, 13):
        made(models, number, "production")
    stored = models.get("churn")
    assert stored
    alias = stored.value.aliases["production"]
    assert (alias.number, alias.by, alias.why, alias.earlier[-2:]) == (12, "ann", "why", (10, 11))
    assert models.all() == [stored.value]
    assert [each.number for each in models.versions("churn", 3)] == [12, 11, 10]
    assert models.version("churn", 7) == version(7)
    assert [line.order for line in models.history("churn", 4)] == [24, 23, 22, 21]
    assert (models.versions("chur"), models.history("churn-2")) == ([], [])


def test_a_version_that_was_let_go_is_kept_no_more(models: Models) -> None:
    """A version that was let go is in no list but still found by its number. `set_asset` writes the version alone."""
    made(models, 1)
    made(models, 2)
    stored = models.get("churn")
    assert stored
    models.write(stored, Write(stored.value, [], replace(version(1), let_go_at=NOW)))
    models.set_asset(version(2), "azureml:churn:2")
    assert [each.number for each in models.kept()] == [2]
    assert [each.asset for each in models.versions("churn")] == ["azureml:churn:2"]
    gone = models.version("churn", 1)
    assert gone
    assert gone.let_go_at == NOW


def test_of_two_writes_at_once_one_wins(models: Models) -> None:
    """With four writers at once, every number is assigned once, and no line of the history is lost or doubled."""
    barrier, lost = threading.Barrier(4), []

    def promote(writer: int) -> None:
        barrier.wait()
        for _ in range(4):
            while True:
                stored = models.get("churn")
                model = stored.value if stored else Model("churn")
                number = model.latest + 1
                after, changes = with_version(model, number, ASKED)
                after, moves = pointed(after, number, f"writer-{writer}", ASKED)
                try:
                    models.write(stored, Write(after, [*changes, *moves], version(number)))
                except Changed:
                    lost.append(writer)
                    continue
                break

    threads = [threading.Thread(target=promote, args=(writer,)) for writer in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stored = models.get("churn")
    assert stored
    assert (stored.value.latest, stored.value.changes, len(stored.value.aliases)) == (16, 32, 4)
    assert [each.number for each in models.versions("churn")] == list(range(16, 0, -1))
    lines = models.history("churn")
    assert [line.order for line in lines] == list(range(32, 0, -1))
    last = {line.alias: line.after for line in reversed(lines) if line.alias}
    assert last == {name: alias.number for name, alias in stored.value.aliases.items()}


def test_a_key_is_recorded_in_place_of_itself(models: Models) -> None:
    """Each key is recorded once, with its newest values."""
    first = SigningKey("a" * 64, "PEM", NOW)
    ended = replace(first, until=NOW, withdrawn_at=NOW, by="ann", why="lost")
    for key in (first, SigningKey("b" * 64, "PEM 2", NOW), ended):
        models.put_signing_key(key)
    assert sorted(models.signing_keys(), key=lambda key: key.sha256) == [ended, SigningKey("b" * 64, "PEM 2", NOW)]
    assert models.all() == []

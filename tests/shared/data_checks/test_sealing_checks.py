"""Drops with bad data are refused or get a warning before anything is submitted, as the drop's route configures."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from shared.api import catalogue
from shared.api.requests import CheckedFile, RouteCheck
from shared.data_checks import at_sealing
from shared.data_checks.model import CheckVerdict, DataCheck
from shared.drops.collect import check_drop
from shared.drops.messages import CheckDrop
from shared.drops.model import DropState
from shared.jobs.data_rule import CheckMode, DataRule, read_rule
from shared.jobs.route import Route
from shared.kernel.drop_key import DropKey
from shared.kernel.errors import BadSetting, Impossible
from shared.kernel.places import DROPS_CONTAINER, OUTPUT_CONTAINER
from shared.runs.data import CARD, PROGRESS
from shared.runs.intake.create import create_run
from shared.runs.intake.request import RunRequest
from tests.fakes.world import ROUTE, World, trainers_folder
from trainers.data_checks.check import check as check_data

KEY = DropKey("ants", "one")


def world_of(tmp_path: Path, **rule: Any) -> World:
    data = DataRule(**{"declared": {"kind": "image_folder"}, **rule})
    route: Route = replace(ROUTE, name="ants", data=data)
    return World(trainers_folder(tmp_path), [route])


def picture(number: int, kind: str = "PNG") -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (20, 20 + number)).save(out, kind)
    return out.getvalue()


def put_pictures(world: World, count: int = 12) -> None:
    for split in ("train", "val"):
        for number, name in enumerate(("ant", "bee")):
            for each in range(count):
                content = picture(4 * each + 2 * number + (split == "val"))
                world.blobs.put(DROPS_CONTAINER, f"{KEY}/{split}/{name}/{each}.png", content)


def close(world: World) -> None:
    """Write the marker, and handle all messages that follow."""
    world.upload(f"{KEY}/_SUCCESS", b"")
    world.settle()


def drop(world: World) -> Any:
    stored = world.drops.get(KEY)
    assert stored
    return stored.value


def check_of(world: World) -> DataCheck:
    said = world.only_run().feature(DataCheck)
    assert said
    return said


def test_good_data_makes_a_run_with_a_card(tmp_path: Path) -> None:
    """The run of valid data has a card with the counts by split and class, and its drop is sealed."""
    world = world_of(tmp_path)
    put_pictures(world)
    close(world)
    assert drop(world).state is DropState.SEALED
    said = check_of(world)
    assert (said.verdict, said.refusals, said.warnings) == (CheckVerdict.FINE, (), ())
    assert said.card["splits"] == {"train": {"ant": 12, "bee": 12}, "val": {"ant": 12, "bee": 12}}
    assert said.card["read"] == "All 48 were read."


def test_bad_data_is_refused_with_names(tmp_path: Path) -> None:
    """A class without images in train is named on the drop, no run is created, and nothing is submitted."""
    world = world_of(tmp_path)
    put_pictures(world)
    world.blobs.put(DROPS_CONTAINER, f"{KEY}/val/wasp/0.png", picture(1))
    close(world)
    assert (drop(world).state, drop(world).code) == (DropState.REJECTED, "bad_data")
    assert "val/wasp: expected only the classes of train (ant, bee)" in drop(world).why
    assert not world.runs.newest()
    assert not world.jobs.jobs
    assert not world.blobs.containers.get(OUTPUT_CONTAINER)


def test_a_refused_drop_is_repaired_by_an_upload(tmp_path: Path) -> None:
    """After the missing images arrive, the same drop becomes a run."""
    world = world_of(tmp_path)
    put_pictures(world)
    world.blobs.put(DROPS_CONTAINER, f"{KEY}/val/wasp/0.png", picture(1))
    close(world)
    world.clock.advance(60)
    for number in range(12):
        world.blobs.put(DROPS_CONTAINER, f"{KEY}/train/wasp/{number}.png", picture(200 + number))
    close(world)
    assert drop(world).state is DropState.SEALED
    assert check_of(world).card["totals"] == {"train": 36, "val": 25}


@pytest.mark.parametrize("mode", [CheckMode.WARN, CheckMode.OFF])
def test_a_route_may_only_warn_or_not_check(tmp_path: Path, mode: CheckMode) -> None:
    """With `warn` the run carries the reasons, and the drop mentions them; with `off` no card is kept."""
    world = world_of(tmp_path, mode=mode)
    put_pictures(world)
    world.blobs.put(DROPS_CONTAINER, f"{KEY}/val/wasp/0.png", picture(1))
    close(world)
    run = world.only_run()
    assert drop(world).state is DropState.SEALED
    if mode is CheckMode.OFF:
        assert run.feature(DataCheck) is None
        return
    assert check_of(world).verdict is CheckVerdict.WARNED
    assert "val/wasp" in check_of(world).refusals[0]
    assert drop(world).why.endswith("A check of its data has 2 warnings.")


def test_leakage_warns(tmp_path: Path) -> None:
    """A picture that is in both train and val is named on the run."""
    world = world_of(tmp_path)
    put_pictures(world)
    world.blobs.put(DROPS_CONTAINER, f"{KEY}/val/ant/same.png", picture(0))
    close(world)
    assert "train/ant/0.png = val/ant/same.png" in check_of(world).warnings[0]


def test_bounds_of_a_route_hold(tmp_path: Path) -> None:
    """A route that allows no broken image refuses a broken one; the reason says what a sample may have missed."""
    world = world_of(tmp_path, bounds={"broken": 0, "sample": 5})
    put_pictures(world)
    world.blobs.put(DROPS_CONTAINER, f"{KEY}/train/ant/empty.png", b"")
    close(world)
    assert "train/ant/empty.png: it is empty" in drop(world).why
    world.blobs.delete(DROPS_CONTAINER, f"{KEY}/train/ant/empty.png")
    world.clock.advance(60)
    close(world)
    assert check_of(world).card["read"].startswith("5 of 48 were read: fewer than 45 % are damaged")


def test_a_long_check_goes_on_in_the_next_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a budget of zero, each message reads 64 more pictures, none of them twice. Then the drop is sealed."""
    world = world_of(tmp_path)
    put_pictures(world, 50)
    read: list[str] = []

    def late_and_counted(container: str, name: str, offset: int, limit: int) -> bytes:
        read.extend([name] * (container == DROPS_CONTAINER))
        world.clock.advance(0.001)
        return whole(container, name, offset, limit)

    whole = world.blobs.read_from
    monkeypatch.setattr(world.blobs, "read_from", late_and_counted)
    monkeypatch.setattr(at_sealing, "BUDGET", timedelta(0))
    close(world)
    assert drop(world).state is DropState.SEALED
    assert len(read) == len(set(read)) == 200  # 64, 64, 64 and 8
    assert check_of(world).card["read"] == "All 200 were read."


def in_several_messages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **rule: Any) -> World:
    """A complete drop whose check reads four files in each message."""
    monkeypatch.setattr("trainers.data_checks.data.AT_ONCE", 4)
    monkeypatch.setattr("trainers.data_checks.of_text.AT_ONCE", 4)
    monkeypatch.setattr(at_sealing, "BUDGET", timedelta(seconds=-1))
    world = world_of(tmp_path, **rule)
    put_pictures(world, 3)
    world.upload(f"{KEY}/_SUCCESS", b"")
    return world


def begin(world: World) -> None:
    """Handle messages up to the first one that checks the data."""
    world.deliver_all()
    while world.drops.get(KEY) is None or (drop(world).state, drop(world).code) == (DropState.OPEN, "collecting"):
        assert world.handle("drop-events")


def progress(world: World) -> list[str]:
    return [name for name in world.blobs.containers.get(OUTPUT_CONTAINER, {}) if name.endswith(PROGRESS)]


def test_a_drop_says_how_far_its_check_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After each message, the drop shows how many files were read; a sealed drop shows no progress."""
    world = in_several_messages(tmp_path, monkeypatch)
    begin(world)
    for read in (4, 8):
        assert (drop(world).code, drop(world).why) == ("checking", f"Checking its data: {read} of 12 files were read.")
        world.clock.advance(2)
        world.handle("drop-events")
    assert not progress(world)
    world.settle()
    assert check_of(world).card["read"] == "All 12 were read."


def test_a_kill_anywhere_in_a_long_check_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages that die after any of their calls and are delivered again give one and the same verdict."""
    whole = in_several_messages(tmp_path, monkeypatch)
    whole.settle()
    for at in range(2, 14):
        world = in_several_messages(tmp_path, monkeypatch)
        begin(world)
        for _ in range(4):
            world.handle("drop-events", crashes=[""] * at + ["after"])
            world.clock.advance(6)
        world.settle()
        assert (drop(world).state, len(world.runs.rows)) == (DropState.SEALED, 1), at
        assert check_of(world) == check_of(whole)
        assert not progress(world)


def test_a_long_check_that_is_delivered_twice_goes_on_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two concurrent deliveries, the slower one writes nothing and sends no message."""
    world = in_several_messages(tmp_path, monkeypatch)
    begin(world)
    world.queues.messages["drop-events"].clear()
    again = CheckDrop(KEY.route, KEY.name, drop(world).token)

    def slow(*of: Any) -> Any:
        """Handle the second delivery while the first one checks."""
        monkeypatch.setattr(at_sealing, "check", check_data)
        check_drop(world.system, again)
        return check_data(*of)

    monkeypatch.setattr(at_sealing, "check", slow)
    check_drop(world.system, again)
    assert drop(world).why == "Checking its data: 8 of 12 files were read."
    assert len(world.queues.messages["drop-events"]) == 1
    world.settle()
    assert (drop(world).state, len(world.runs.rows)) == (DropState.SEALED, 1)


def test_an_upload_during_a_long_check_begins_it_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check reads the overwritten picture's new content, and the progress on the old content is removed."""
    world = in_several_messages(tmp_path, monkeypatch)
    begin(world)
    assert progress(world)
    world.clock.advance(6)
    world.blobs.put(DROPS_CONTAINER, f"{KEY}/train/ant/0.png", b"no picture")
    world.upload(f"{KEY}/_SUCCESS", b"")
    world.settle()
    assert drop(world).code == "bad_data"
    assert "train/ant/0.png: it is not a picture" in drop(world).why
    assert not progress(world)


@pytest.mark.parametrize(
    ("kind", "content"),
    [("text", lambda name, number: f"{name} {number} ".encode() * 9000), ("csv", lambda *_: b"a,b\n8,9\n")],
)
def test_texts_and_tables_take_several_messages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, content: Callable[[str, int], bytes]
) -> None:
    """A check in several messages finds the same as a check in one, such as a row that is in two tables."""
    cards = []
    for budget in (timedelta(seconds=-1), timedelta(hours=1)):
        world = in_several_messages(tmp_path, monkeypatch, declared={"kind": kind})
        world.blobs.containers[DROPS_CONTAINER].clear()
        for split in ("train", "test"):
            for number in range(3):
                world.blobs.put(DROPS_CONTAINER, f"{KEY}/{split}-{number}.{kind}", content(split, number))
        world.upload(f"{KEY}/_SUCCESS", b"")
        monkeypatch.setattr(at_sealing, "BUDGET", budget)
        begin(world)
        assert (drop(world).code == "checking") is (budget < timedelta(0))
        world.settle()
        cards.append(check_of(world))
    assert cards[0] == cards[1]
    assert any("rows are in several splits" in each for each in cards[0].warnings) is (kind == "csv")


def test_the_dry_run_checks_a_list(tmp_path: Path) -> None:
    """POST routes/{route}/check describes the route's checks, and returns their findings for a list of files."""
    world = world_of(tmp_path)
    assert catalogue.check(world.system, "ants", RouteCheck())["data"] == {
        "mode": "refuse", "declared": {"kind": "image_folder"}, "bounds": {},
    }  # fmt: skip
    names = [f"{split}/{name}/{number}.jpg" for split in ("train", "val") for name in "ab" for number in range(12)]
    files = [CheckedFile(name, 100 + number, f"{number:032x}") for number, name in enumerate(names)]
    assert catalogue.check(world.system, "ants", RouteCheck(files=files))["data"]["verdict"] == "fine"
    files += [CheckedFile("val/a/same.jpg", 100, f"{0:032x}"), CheckedFile("val/c/1.jpg", 5)]
    said = catalogue.check(world.system, "ants", RouteCheck(files=files))["data"]
    assert said["verdict"] == "refused"
    assert "val/c" in said["refusals"][0]
    assert any("train/a/0.jpg = val/a/same.jpg" in each for each in said["warnings"])


def test_a_job_of_its_own_is_not_checked_as_the_trainers(tmp_path: Path) -> None:
    """A drop with its own command is checked as the route's trainer would read it only if the route requests that."""
    world = World(trainers_folder(tmp_path), [ROUTE])
    (tmp_path / "mnist").mkdir()
    (tmp_path / "mnist" / "data.json").write_text('{"kind": "idx"}')
    for job, declared in (
        (None, {"kind": "idx"}),
        ({"inputs": {"epochs": 1}}, {"kind": "idx"}),
        ({"command": "python mine.py"}, {}),
    ):
        assert catalogue.check(world.system, "mnist", RouteCheck(job=job))["data"]["declared"] == declared


OWN = {"command": "python train.py --data ${{inputs.data}}", "environment": "azureml:sklearn:1", "code": "./src"}


def put_table(world: World, rows: bytes, **job: Any) -> None:
    world.blobs.put(DROPS_CONTAINER, f"{KEY}/src/train.py", b"print()")
    world.blobs.put(DROPS_CONTAINER, f"{KEY}/train.csv", rows)
    world.upload(f"{KEY}/job.yaml", json.dumps({**OWN, **job}).encode())
    close(world)


def test_a_job_file_declares_its_data(tmp_path: Path) -> None:
    """The data declaration in a drop's job file replaces the route's declaration, and is not sent to Azure ML."""
    route = replace(ROUTE, name="ants", allow=frozenset({"code"}), data=DataRule(declared={"kind": "image_folder"}))
    columns = {"age": {"type": "integer", "minimum": 0}}
    for rows, state in ((b"age\n3\n-4\n", DropState.REJECTED), (b"age\n3\n4\n", DropState.SEALED)):
        world = World(trainers_folder(tmp_path), [route])
        put_table(world, rows, data={"kind": "csv", "columns": columns})
        assert drop(world).state is state, drop(world).why
        if state is DropState.REJECTED:
            assert "train.csv: line 3: age: expected integer, minimum 0, found '-4'" in drop(world).why
            assert not world.jobs.jobs
        else:
            assert check_of(world).card["totals"] == {"train": 2}
            assert "data" not in world.only_run().asked.request.rest


@pytest.mark.parametrize(
    ("job", "message"),
    [
        ({"data": {"kind": "table"}}, "data: expected a mapping with kind, one of files, idx"),
        (
            {"data": {"kind": "csv", "columns": {"a": {"max": 3}}}},
            "data: columns.a: unknown keyword 'max'; known keywor",
        ),
        ({"data": {"kind": "csv", "columns": {"a": {"pattern": "(a+)+b"}}}}, "only routes.yaml can have a pattern"),
        ({"data": {"kind": "csv"}, "command": None}, "the route declares its data. Bring a job of your own"),
    ],
)
def test_a_wrong_declaration_of_a_job_file_is_told(tmp_path: Path, job: dict[str, Any], message: str) -> None:
    """A wrong declaration rejects the drop and names the key's line; the dry run gives the same error."""
    world = World(trainers_folder(tmp_path), [replace(ROUTE, name="ants", allow=frozenset({"code"}))])
    put_table(world, b"a\n1\n", **job)
    assert (drop(world).state, drop(world).code) == (DropState.REJECTED, "bad_job_file")
    assert "job.yaml line " in drop(world).why
    assert message in drop(world).why
    document = {key: value for key, value in {**OWN, **job}.items() if value is not None}
    with pytest.raises(Impossible, match=re.escape(message)):
        catalogue.check(world.system, "ants", RouteCheck(job=document))


def test_the_dry_run_uses_the_declaration_of_the_job_file(tmp_path: Path) -> None:
    world = World(trainers_folder(tmp_path), [replace(ROUTE, name="ants", allow=frozenset({"code"}))])
    asked = RouteCheck(job={**OWN, "data": {"kind": "csv"}}, files=[CheckedFile("a.txt", 3)])
    said = catalogue.check(world.system, "ants", asked)["data"]
    assert (said["declared"], said["verdict"]) == ({"kind": "csv"}, "refused")
    assert "names that end in .csv or" in said["refusals"][0]


def test_a_submitted_job_has_no_declaration(tmp_path: Path) -> None:
    """Only drops are checked, so `submit` refuses a declaration and says where it belongs."""
    world = World(trainers_folder(tmp_path))
    with pytest.raises(Impossible, match="declares the files of a drop"):
        create_run(world.system, RunRequest(job={**OWN, "data": {"kind": "csv"}}))


def test_rules_are_read_or_refused() -> None:
    """`check` takes a mode or a mapping, `data` a declaration; any other value is an error that lists the choices."""
    assert read_rule(None, None, "x") == DataRule()
    assert read_rule(False, None, "x").mode is CheckMode.OFF  # as YAML reads off
    assert read_rule({"mode": "warn", "few": 3}, {"kind": "csv", "columns": ["a"]}, "x") == DataRule(
        CheckMode.WARN, {"few": 3}, {"kind": "csv", "columns": ["a"]}
    )
    for check, data, message in (
        ("maybe", None, "choose refuse, warn, off"),
        ({"fewer": 1}, None, "unknown key 'fewer'; choose from mode, sample"),
        ({"broken": 2}, None, "must be a number from 0 to 1"),
        (None, {"kind": "images"}, "one of files, idx"),
    ):
        with pytest.raises(BadSetting, match=message):
            read_rule(check, data, "x")


def test_a_drop_without_a_run_keeps_its_card_until_it_is_removed(tmp_path: Path) -> None:
    """A route that trains nothing keeps the card beside the generation's list."""
    data = DataRule(declared={"kind": "csv", "columns": ["age"]})
    world = World(trainers_folder(tmp_path), [replace(ROUTE, name="ants", trains=False, data=data)])
    world.blobs.put(DROPS_CONTAINER, f"{KEY}/train.csv", b"age\n1\n2\n")
    close(world)
    (card,) = [name for name in world.blobs.containers[OUTPUT_CONTAINER] if name.endswith(CARD)]
    said = at_sealing.kept(world.blobs, card.removesuffix(f"/{CARD}"))
    assert said
    assert said.card["totals"] == {"train": 2}

"""The data card in a model's provenance and model card."""

from __future__ import annotations

import json
from pathlib import Path

from shared.data_checks.model import DataCheck
from shared.kernel.places import DROPS_CONTAINER
from shared.models.card import CARD
from shared.models.decide import ChangeRequest
from shared.models.promote import promote_run
from shared.models.provenance import PROVENANCE
from shared.runs.intake.create import create_run
from shared.runs.intake.request import RunRequest
from tests.shared.data_checks.test_sealing_checks import KEY, close, picture, put_pictures, world_of
from tests.shared.models.test_provenance import ANN, finish


def test_a_requested_run_has_the_card_of_the_generation_that_it_reads(tmp_path: Path) -> None:
    """A requested run has the card of its generation, also when it reads a part of the drop. A run of an open drop
    has no card, because the files may differ."""
    world = world_of(tmp_path)
    put_pictures(world)
    close(world)
    (own,) = world.runs.newest()
    asked = create_run(world.system, RunRequest(template="ants", data=f"drops/{KEY}"))
    part = create_run(world.system, RunRequest(template="ants", data=f"drops/{KEY}/train"))
    for run in (own, asked, part):
        said = run.feature(DataCheck)
        assert said
        assert (said.generation, said.card["totals"]) == (f"{KEY}@1", {"train": 24, "val": 24})
        assert ("The run reads only train of this drop, and the card is that of the whole drop." in said.notes) is (
            run is part
        )
    world.upload(f"{KEY}/train/ant/more.png", picture(900))
    world.deliver_all()
    world.handle("drop-events")
    later = create_run(world.system, RunRequest(template="ants", data=f"drops/{KEY}"))
    assert later.feature(DataCheck) is None


def test_the_provenance_of_a_model_has_the_data_card(tmp_path: Path) -> None:
    """The provenance has the data card, and the model card shows it as a table of classes by split. Names from
    outside add no markup."""
    world = world_of(tmp_path)
    put_pictures(world)
    for number in range(12):
        for split in ("train", "val"):
            world.blobs.put(DROPS_CONTAINER, f"{KEY}/{split}/a|b<i>/{number}.png", picture(600 + number))
    close(world)
    finish(world)
    version = promote_run(world.system, world.only_run().name, "ants", "", ChangeRequest(world.clock(), ANN))
    stored = world.blobs.containers["output"]
    statement = json.loads(stored[f"{version.proof}/{PROVENANCE}"].data)
    check = statement["predicate"]["buildDefinition"]["internalParameters"]["data"]["check"]
    assert check["verdict"] == "warned"  # the class has the same generated pictures in both splits
    assert check["card"]["totals"] == {"train": 36, "val": 36}
    text = stored[f"{version.proof}/{CARD}"].data.decode()
    assert "The check of the data says: warned. All 72 were read." in text
    assert "| class | train (images) | val (images) |" in text
    assert "| ant | 12 | 12 |" in text
    assert "| a\\|b&lt;i> | 12 | 12 |" in text
    assert "- The same file is in several splits" in text

"""The data card in the provenance and in the card of a model."""

from __future__ import annotations

import json
from pathlib import Path

from shared.kernel.places import DROPS_CONTAINER
from shared.models.card import CARD
from shared.models.decide import ChangeRequest
from shared.models.promote import promote_run
from shared.models.provenance import PROVENANCE
from tests.shared.data_checks.test_sealing_checks import KEY, close, picture, put_pictures, world_of
from tests.shared.models.test_provenance import ANN, finish


def test_the_provenance_of_a_model_has_the_data_card(tmp_path: Path) -> None:
    """So has its model card, as a table of classes by split; names from outside add no markup."""
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
    assert check["verdict"] == "warned"  # the made-up pictures of the class are in both splits
    assert check["card"]["totals"] == {"train": 36, "val": 36}
    text = stored[f"{version.proof}/{CARD}"].data.decode()
    assert "The check of the data says: warned. All 72 were read." in text
    assert "| class | train (images) | val (images) |" in text
    assert "| ant | 12 | 12 |" in text
    assert "| a\\|b&lt;i> | 12 | 12 |" in text
    assert "- The same file is in several splits" in text

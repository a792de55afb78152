from __future__ import annotations

from pathlib import Path

import pytest

from shared import bootstrap
from tests.fakes.world import World, trainers_folder


@pytest.fixture(autouse=True)
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    made = World(trainers_folder(tmp_path))
    for name in ("system", "post", "schedules", "removals"):
        monkeypatch.setattr(bootstrap, name, lambda name=name: getattr(made, name))
    return made

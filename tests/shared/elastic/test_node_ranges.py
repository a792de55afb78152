"""Which jobs may request a range of nodes, and how the range is stored."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from shared.elastic.model import elastic_of
from shared.kernel.errors import Impossible
from shared.runs.intake import create
from shared.runs.intake.dry_run import dry_run
from shared.runs.intake.request import NodeRange, RunRequest
from tests.fakes.world import ROUTE, World, trainers_folder
from tests.shared.elastic.test_elastic_runs import ROUTE_1_TO_3


def test_a_range_of_nodes_needs_an_elastic_job(tmp_path: Path) -> None:
    """A range is refused for a job without a rendezvous; for an elastic job, a plain number is a range of one."""
    world = World(trainers_folder(tmp_path), [ROUTE, replace(ROUTE_1_TO_3, name="elastic")])
    world.upload("mnist/x/1.bin")
    asked = RunRequest(template="mnist", data="drops/mnist/x", nodes=NodeRange(1, 2))
    with pytest.raises(Impossible, match="one number of nodes"):
        create.create_run(world.system, asked)
    run = create.create_run(world.system, RunRequest(template="elastic", data="drops/mnist/x", nodes=2))
    assert (elastic_of(run).min_nodes, run.asked.nodes, elastic_of(run).resubmissions) == (2, 2, 2)
    ranged = RunRequest(template="elastic", data="drops/mnist/x", nodes=NodeRange(1, 4), resubmissions=7)
    run = create.create_run(world.system, ranged)
    assert (elastic_of(run).min_nodes, run.asked.nodes, elastic_of(run).resubmissions) == (1, 4, 7)
    with pytest.raises(Impossible, match="at least 3, and at most 2"):
        create.create_run(world.system, RunRequest(template="elastic", data="drops/mnist/x", nodes=NodeRange(3, 2)))
    shown = dry_run(world.system, ranged)["job"]
    assert shown["environment_variables"]["PET_NNODES"] == "1:4"

"""The demo's tour: its commands are those of the command line, and a failed command ends the tour."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import typer

from cli import commands
from local import tour


@pytest.mark.parametrize("words", [act for step in tour.STEPS for act in step.acts if not callable(act)])
def test_each_command_is_one_that_a_person_can_type(words: tuple[str, ...]) -> None:
    """The command line accepts the command with these arguments and options."""
    group: Any = typer.main.get_command(commands.load())
    group.commands[words[0]].make_context(words[0], [*words[1:], "--profile", "local"])


def test_the_tour_shows_what_it_runs_and_ends_where_a_command_fails(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Each command is printed as one types it; the final message names the failed command and the place of the
    logs."""
    walk = tour.Tour(tmp_path, tmp_path, "http://127.0.0.1:9/api")
    with pytest.raises(tour.TourFailed, match=f"`show` ended with exit status 1.*{tmp_path}"):
        walk.walk([tour.Step("Look", "It is not there.", [("show", "none")])])
    said = capfd.readouterr().out
    assert "1 of 1  Look\nIt is not there." in said
    assert "$ python3 trainyard.py show none" in said

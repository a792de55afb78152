"""Fields of a run that are declared with a label: answers and the command line show them without more code."""

from __future__ import annotations

from rich.console import Console

from cli.show import runs as show
from shared.api import records
from tests.contract.some_runs import run
from tests.fakes.parts import changed


def test_a_labeled_field_is_shown_under_its_label() -> None:
    """The answer has the value as text, and `show` prints the label and the value."""
    answer = records.run(changed(run(), hardware="2 of Tesla T4"))
    assert answer["labeled"] == {"Trained with": "2 of Tesla T4"}
    console = Console(width=200)
    with console.capture() as printed:
        console.print(show.one(answer))
    assert "trained with" in printed.get()
    assert "2 of Tesla T4" in printed.get()


def test_an_empty_labeled_field_is_not_shown() -> None:
    """Nothing is said of what is not known."""
    assert records.run(run())["labeled"] == {}

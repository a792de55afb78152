"""The column headings of a comparison of runs."""

from __future__ import annotations

from io import StringIO

import pytest
from rich.console import Console, RenderableType

from cli.show import comparison
from cli.show.comparison import short


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        (["run-0123456789abcdef", "run-9876543210abcdef"], ["run-0123", "run-9876"]),
        (["run-0123456789abcdef-t0", "run-0123456789abcdef-t12"], ["t0", "t12"]),
    ],
)
def test_names_are_as_long_as_tells_them_apart(names: list[str], shown: list[str]) -> None:
    """Runs are named by their first distinguishing digits, and trials of one sweep by their numbers."""
    assert short(names) == shown


def test_no_metric_is_left_out_silently() -> None:
    """A run's own `loss` is drawn beside another run's `val_loss`. A metric without a plot is named, and --name
    plots it."""
    metrics = ["loss", "val_loss", "a", "b", "c", "world_size"]
    names = ["run-0123456789abcdef", "run-9876543210abcdef"]
    answer = {
        "runs": [{"run": name} for name in names],
        "different": [],
        "metrics": [{"name": name, "values": [1.0, 2.0], "best": 0} for name in metrics],
    }
    curves = {run: {name: [[0, 1.0], [1, 2.0]] for name in metrics} for run in names}

    def lines(part: RenderableType) -> list[str]:
        out = StringIO()
        Console(file=out, width=100).print(part)
        return out.getvalue().splitlines()

    def plots(*chosen: str, all_of_them: bool = False) -> list[str]:
        return lines(comparison.curves(names, curves, list(chosen), all_of_them, 80))

    rows = lines(comparison.differences(answer))
    assert {" ".join(line.split()[:2]) for line in rows[1:6]} == {f"best {name}" for name in metrics[:5]}
    assert plots() == ["Curves, with --plot or --name: a, b, c, loss, val_loss"]
    assert plots(all_of_them=True)[-1].strip() == "More, with --name: val_loss"
    assert sum("step 1" in line for line in plots(*metrics)) == len(metrics)

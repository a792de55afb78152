"""A metric's direction follows from the whole words of its name."""

from __future__ import annotations

from pathlib import Path

import pytest

from shared.jobs.metric_goal import MAXIMIZED, MINIMIZED, Goal, goal_of


@pytest.mark.parametrize(
    ("metric", "goal"),
    [
        *((name, Goal.MINIMIZE) for name in ("rmse", "test_rmse", "val/Loss", "valLoss", "top5_error", "word err")),
        *((name, Goal.MINIMIZE) for name in ("perplexity", "mean-absolute-error", "epoch_seconds", "MAE")),
        *((name, Goal.MAXIMIZE) for name in ("auc", "test_accuracy", "map50", "F1", "r2", "mIoU", "Accuracy/val")),
        *((name, None) for name in ("blossom", "terror", "mapping", "images_per_second", "glossy", "gap", "")),
        ("accuracy_loss", None),
        ("samples_per_seconds_loss", Goal.MINIMIZE),
    ],
)  # fmt: skip
def test_only_whole_words_tell(metric: str, goal: Goal | None) -> None:
    """A word inside another has no effect, and words of both lists contradict each other."""
    assert goal_of(metric) == goal


def test_the_lists_have_no_word_in_common() -> None:
    """A word in both lists would mean both directions."""
    assert not MINIMIZED & MAXIMIZED


def test_the_page_lists_every_word() -> None:
    """The published tables in docs/models.md have exactly the words that the code knows."""
    page = Path("docs/models.md").read_text("utf-8")
    for goal, words in ((Goal.MINIMIZE, MINIMIZED), (Goal.MAXIMIZE, MAXIMIZED)):
        (row,) = [line for line in page.splitlines() if line.startswith(f"| {goal} |")]
        assert row.split("|")[2].strip() == ", ".join(sorted(words))

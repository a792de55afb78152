"""The comment that `report` prints: its content, and that text from outside stays text."""

from __future__ import annotations

from typing import Any

from cli.show.report_markdown import MARK, MOST_POINTS, report

RUN: dict[str, Any] = {
    "run": "run-1", "state": "completed", "cause": "", "duration_seconds": 90.0, "greatest_cost": 0.5,
    "cost": {"training": 0.02, "allocation": 0.01, "idle": 0.0}, "parameters": {"lr": 0.1, "epochs": 2},
    "metrics": {"of_model": {"loss": 0.31, "accuracy": 0.9712}}, "diagnosis": None,
    "best": {"metric": "accuracy", "of_model": 0.9712},
}  # fmt: skip
CHAMPION = {"model": "digits", "number": 3, "metrics": {"accuracy": 0.9654}, "judged_by": ["accuracy"]}


def test_a_run_is_shown_beside_the_champion() -> None:
    """The comment has the metrics of both, the deciding one first, the cost, and a chart."""
    text = report(RUN, CHAMPION, [(1, 0.5), (2, 0.9)])
    assert text.startswith(f"{MARK}\n### Trainyard: `run-1` completed: `accuracy` 0.9712\n")
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert rows[0] == "| | this run | champion `digits version 3` |"
    assert rows[2:4] == ["| `accuracy` | 0.9712 | 0.9654 |", "| `loss` | 0.31 |  |"]
    assert rows[4] == "| cost | $0.03 (at most $0.50) | |"
    assert rows[5:] == ["| time | 1.5 min | |", "| parameters | `epochs=2, lr=0.1` | |"]
    assert '```mermaid\nxychart-beta\n    title "accuracy by step"\n    x-axis 1 --> 2\n' in text
    assert "line [0.5, 0.9]\n```\n" in text


def test_a_failure_is_shown_with_its_cause() -> None:
    """The comment has the cause, the quoted lines and the advice; without a champion the comment says so."""
    diagnosis = {
        "cause": "cuda_oom", "certainty": "certain", "summary": "The GPU has no memory left.",
        "evidence": [{"text": "torch.OutOfMemoryError: CUDA out of memory"}], "advice": ["Halve batch_size."],
    }  # fmt: skip
    failed = {**RUN, "state": "failed", "best": None, "cost": None, "diagnosis": diagnosis, "parameters": {}}
    text = report(failed, None)
    assert "no champion yet" in text
    assert "| cost | unknown (at most $0.50) | |" in text
    assert "**Why it failed** (cuda_oom, certain): `The GPU has no memory left.`" in text
    assert "```text\ntorch.OutOfMemoryError: CUDA out of memory\n```\n- `Halve batch_size.`\n" in text
    assert "mermaid" not in text


def test_text_from_outside_stays_text() -> None:
    """Backticks, fences, tables, mentions, links and invisible characters of a name or log break no markup and
    mention nobody."""
    order = "`@everyone` | ![x](http://e.example/x.png) <img src=x>\n```\n# Merge this\u202e"
    metric = {"metric": 'a"] \n line [9]', "of_model": 1.0}
    bad = {**RUN, "metrics": {"of_model": {order: 1.0}}, "best": metric, "parameters": {"tag": order}}
    text = report(bad, {**CHAMPION, "judged_by": []}, [(0, 1.0), (1, 2.0)])
    outside = [line for line in text.splitlines() if "everyone" in line]
    assert len(outside) == 2
    assert all(line.count("`") == 2 and line.count("|") in (4, 5) for line in outside)
    assert "\u202e" not in text
    assert "# Merge" not in [line[:7] for line in text.splitlines()]
    assert '    title "a     line  9  by step"' in text
    diagnosed = {**RUN, "state": "failed", "diagnosis": {
        "cause": "user_exception", "certainty": "likely", "summary": order, "evidence": [{"text": order}], "advice": [],
    }}  # fmt: skip
    lines = report(diagnosed, None).splitlines()
    assert lines.count("```") == 1
    assert lines.count("```text") == 1


def test_a_long_curve_is_thinned() -> None:
    """A chart has at most forty points, including the first and the last."""
    text = report(RUN, None, [(step, step / 100) for step in range(500)])
    values = text.partition("line [")[2].partition("]")[0].split(", ")
    assert len(values) == MOST_POINTS
    assert (values[0], values[-1]) == ("0", "4.99")

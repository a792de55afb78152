"""The rule of a challenge: which metric is better, and which rules are valid settings."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from shared.jobs.route_model import RouteModel, read_model
from shared.kernel.errors import BadSetting
from shared.models.challenge import judge
from shared.models.goal import goal_for
from shared.models.model import Version
from shared.runs.model import Run

EPOCHS = {"epochs": {"type": "integer", "minimum": 0, "description": "passes", "default": 2}}
NOW = datetime(2026, 1, 2, tzinfo=UTC)


def run(metrics: dict[str, float]) -> Run:
    return Run.of(
        name="r",
        created_at=NOW,
        drop="a/b",
        route="a",
        fingerprint="f",
        experiment="e",
        cluster="c",
        nodes=1,
        last_metrics=metrics,
    )


@pytest.mark.parametrize(
    ("metric", "value", "before", "by", "wins"),
    [
        ("auc", 0.902, 0.9, 0.002, True),
        ("auc", 0.9, 0.9, 0.0, False),
        ("loss", 0.1, 0.2, 0.05, True),
        ("loss", 0.3, 0.2, 0.05, False),
        ("rmse", 0.3, 0.5, 0.0, True),
        ("rmse", 0.5, 0.3, 0.0, False),
        ("auc", None, 0.9, 0.0, False),
        ("auc", 0.9, None, 0.0, False),
    ],
)
def test_better_is_lower_for_losses_and_never_equal(
    metric: str, value: float | None, before: float | None, by: float, wins: bool
) -> None:
    """A run without the metric does not win, nor does a run against a champion without it."""
    runs = [run({} if each is None else {metric: each}) for each in (value, before)]
    version = Version("churn", 1, "r", NOW, "", "", "")
    rule = RouteModel("churn", metric, by)
    assert judge(rule, runs[0], version, runs[1], goal_for(rule, runs[0], None)).wins is wins


@pytest.mark.parametrize(
    "section",
    [
        "churn",
        {"name": "churn", "challenger": {"by": 1}},
        {"name": "Churn", "challenger": {"metric": "auc"}},
        {"name": "churn", "challenger": {"metric": "auc", "by": -1}},
        {"name": "churn", "challenger": {"metric": "auc", "test": "epochs"}},
        {"name": "churn", "challenger": {"metric": "auc", "test": {"epoch": 0}}},
        {"name": "churn", "challenger": {"metric": "auc", "test": {"epochs": -1}}},
        {"name": "churn", "challenger": {"metric": "auc"}, "more": 1},
        {"name": "churn", "challenger": {"metric": "auc", "goal": "up"}},
        {"name": "churn", "protect": "production"},
        {"name": "churn", "allow_code": "yes"},
        {"name": "churn", "requires": ["approval"]},
    ],
)
def test_what_is_no_rule_is_a_bad_setting(section: Any) -> None:
    """The error shows the value, and the form or the limits."""
    with pytest.raises(BadSetting, match=r"routes\.yaml: route 'churn': model"):
        read_model(section, "routes.yaml: route 'churn'", EPOCHS)
    assert read_model({"name": "churn", "challenger": {"metric": "auc"}}, "", EPOCHS) == RouteModel("churn", "auc")

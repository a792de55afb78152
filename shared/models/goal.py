"""The direction of the metric by which versions of a model are compared, and the values that are compared. Pure."""

from __future__ import annotations

from shared.jobs.metric_goal import Goal, goal_of
from shared.jobs.route_model import RouteModel
from shared.kernel.errors import Impossible
from shared.models.model import Model
from shared.runs.model import Run
from shared.runs.views.summary import metric_named

HOW = (
    "Declare the direction in the routes file: challenger: {metric: METRIC, goal: maximize} or minimize. A trainer "
    "can also declare it, in "
    'model.json: {"goals": {"METRIC": "maximize"}}.'
)


def goal_for(rule: RouteModel, run: Run, model: Model | None) -> Goal:
    """Return the goal: of the model's existing versions; else from the route, the sweep, the trainer or the name.

    Raises Impossible if no source states the goal, or if the route's goal differs from the goal of the model's
    versions.
    """
    kept = model.goals.get(rule.metric, "") if model else ""
    said = rule.goal or _of_sweep(rule, run) or _of_trainer(rule, run) or goal_of(rule.metric)
    if kept and rule.goal and rule.goal != kept:
        raise Impossible(
            f"The versions of {rule.name} were compared by {kept} {rule.metric}, but the route says {rule.goal}. Use "
            "another model name for models that are compared differently.",
            "other_goal",
        )
    if not (kept or said):
        how = HOW.replace("METRIC", rule.metric)
        raise Impossible(f"It is unknown whether more or less {rule.metric} is better. {how}", "no_goal")
    return Goal(kept or str(said))


def value_of(metric: str, run: Run) -> float | None:
    """Return the metric's value of the run's saved model; None if the run has no such metric."""
    values = run.measured.of_model
    name = metric_named(metric, values)
    return values[name] if name else None


def whose_word(metric: str, run: Run) -> str:
    """Return the source of the value: the trainer, or no one (the value is then the last value of the training)."""
    return run.measured.said_by(metric_named(metric, run.measured.of_model))


def _of_sweep(rule: RouteModel, run: Run) -> Goal | None:
    sweep = run.asked.request.sweep
    if sweep is None or metric_named(rule.metric, [sweep.metric]) != sweep.metric:
        return None
    return Goal.MAXIMIZE if sweep.maximize else Goal.MINIMIZE


def _of_trainer(rule: RouteModel, run: Run) -> Goal | None:
    name = metric_named(rule.metric, run.measured.goals)
    return Goal(run.measured.goals[name]) if name else None

"""The tools that change something: plan, submit and cancel. An action that costs money takes a plan and its submission.

A plan is for one of the ACTIONS, each of which is one operation of the API.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any, NamedTuple

from msgspec import UNSET, Meta, UnsetType, to_builtins

from shared.agents.plans import SubmissionPlan, check_cost, check_time
from shared.agents.tools import Desk, ToolAnswer, arguments, arguments_of, operation
from shared.api.signature import signature
from shared.kernel.errors import Impossible, NotFound

_TRAIN = signature(operation("create_run")).body
_PROMOTE = signature(operation("promote_run")).body
_ID = {"run": Annotated[str, Meta(min_length=1, max_length=63, description="The complete name of a run.")]}
Train = arguments(
    "Train",
    "A training. Exactly one of trainer and template names it; find shows both, with their parameters.",
    arguments_of(
        _TRAIN,
        (
            *("trainer", "template", "parameters", "data", "nodes", "cluster", "experiment", "done_by"),
            *("within_seconds", "timeout_seconds", "tags", "from_run", "sweep"),
        ),
    ),
)
Promote = arguments(
    "Promote",
    "A completed run whose model becomes the next version of a model.",
    [("model", Annotated[str, Meta(min_length=1, max_length=100)]), ("run", _ID["run"])],
    arguments_of(_PROMOTE, ("alias", "why")),
)
Reproduce = arguments(
    "Reproduce",
    "A version to train again from its recorded parts, as a proof.",
    [(name, Annotated[str, Meta(min_length=1, max_length=100)]) for name in ("model", "version")],
)


class Action(NamedTuple):
    """An operation that can be planned, described in words. `path` are the arguments of its path; the others are
    its body.
    """

    operation: str
    path: tuple[str, ...]
    words: str


ACTIONS = {
    "train": Action("create_run", (), "starts a training"),
    "promote": Action("promote_run", ("model",), "makes the run's model the next version"),
    "reproduce": Action("reproduce_version", ("model", "version"), "trains the version again"),
}
PlanArguments = arguments(
    "PlanArguments",
    "Exactly one of these.",
    [
        ("train", Train | UnsetType, UNSET),
        ("promote", Promote | UnsetType, UNSET),
        ("reproduce", Reproduce | UnsetType, UNSET),
    ],
)
SubmitArguments = arguments(
    "SubmitArguments",
    "The plan to submit.",
    [("plan", Annotated[str, Meta(pattern="^plan-[0-9a-z]{1,40}$", description="The id that plan returned.")])],
)
CancelArguments = arguments("CancelArguments", "The run to cancel.", [("run", _ID["run"])])


def plan(desk: Desk, asked: Any) -> ToolAnswer:
    given = {name: value for name, value in to_builtins(asked).items() if value is not UNSET}
    if len(given) != 1:
        raise Impossible(f"Give exactly one of {', '.join(ACTIONS)}, not {', '.join(given) or 'none'}.", "bad_request")
    ((name, wanted),) = given.items()
    action = ACTIONS[name]
    path = {key: wanted.pop(key) for key in action.path}
    made = SubmissionPlan(f"plan-{desk.new_token()}", desk.caller, action.operation, desk.clock(), path, wanted)
    facts, outside = _foreseen(desk, made)
    made = replace(made, greatest=facts.get("greatest_cost"))
    desk.plans.put(made)
    shown = {"plan": made.id, "does": action.words, **facts, "expires_at": str(made.expires_at)}
    reasons = outside.get("reasons")
    advice = "It could not start now: see reasons." if reasons else f"submit {made.id} does exactly this, once."
    return ToolAnswer(shown, outside, advice=(advice,))


def _foreseen(desk: Desk, made: SubmissionPlan) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the costs of the plan's request, and why the request could not start now. Raises the errors of a bad
    request.
    """
    if made.operation == "create_run":
        found = desk.call("create_run", query={"dry_run": True}, body=made.body, key=made.id)
        return _costs(found["cost"]), {"reasons": [each["message"] for each in found["reasons"]], "asked": made.body}
    if made.operation == "reproduce_version":
        version = desk.call("get_version", path=made.path)
        run = desk.call("get_run", path={"run": version["run"]})
        costs = {"estimated": run["estimated_cost"], "greatest": run["greatest_cost"]}
        return _costs(costs), {"asked": made.path}
    return {"greatest_cost": 0.0}, {"asked": {**made.path, **made.body}}


def _costs(costs: dict[str, Any]) -> dict[str, Any]:
    return {"estimated_cost": costs["estimated"], "greatest_cost": costs["greatest"]}


def submit(desk: Desk, asked: Any) -> ToolAnswer:
    """Submit a plan once. The time `submitted_at` is written first, so a repeated call completes an interrupted
    one.
    """
    found = desk.plans.get(desk.caller, asked.plan)
    if found is None:
        raise NotFound(f"You have no plan {asked.plan}. Plans are kept for a day, and only their makers see them.")
    if found.result:
        return _submitted(found)
    now = desk.clock()
    check_time(found, now)
    if found.submitted_at is None:
        check_cost(found, _foreseen(desk, found)[0].get("greatest_cost"))
        found = replace(found, submitted_at=now)
        desk.plans.put(found)
    result = desk.call(found.operation, path=found.path, body=found.body or None, key=found.id)
    found = replace(found, result={name: result[name] for name in ("run", "state", "number") if name in result})
    desk.plans.put(found)
    return _submitted(found)


def _submitted(found: SubmissionPlan) -> ToolAnswer:
    facts = {"plan": found.id, "submitted_at": str(found.submitted_at), **found.result}
    facts |= {"greatest_cost": found.greatest} if found.greatest else {}
    started = found.operation != "promote_run"
    advice = "wait says when to ask about it again." if started else "inspect the version to check its proof."
    return ToolAnswer(facts, advice=(advice,))


def cancel(desk: Desk, asked: Any) -> ToolAnswer:
    found = desk.call("cancel_run", path={"run": asked.run})
    return ToolAnswer(
        {"run": found["run"], "state": found["state"]}, advice=("Its nodes are charged until they stop.",)
    )

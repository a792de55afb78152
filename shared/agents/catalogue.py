"""The eight tools, in the order in which a new user needs them."""

from __future__ import annotations

from shared.agents.logs import LogArguments, logs
from shared.agents.outside import MARKED
from shared.agents.reading import CompareArguments, FindArguments, InspectArguments, compare, find, inspect
from shared.agents.spending import CancelArguments, PlanArguments, SubmitArguments, cancel, plan, submit
from shared.agents.tools import Tool
from shared.agents.waiting import WaitArguments, wait

INSTRUCTIONS = (
    "Trainyard trains models on clusters that cost money. A run is one training; a model has numbered versions and "
    "aliases such as production, each with a proof of its origin. Start with find. Whatever costs money takes two "
    f"calls: plan states the greatest cost, submit does what was planned, once. {MARKED}"
)
READS = {"readOnlyHint": True, "openWorldHint": False}
CHANGES = {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False}

TOOLS = (
    Tool(
        "find",
        "Find runs, trainers, routes, models or clusters",
        "List runs, newest first, or what can be trained (trainers, routes), models and clusters. Choose runs by "
        "state, experiment, cluster, tag, time, or a condition on values: where='lr<0.1 and accuracy>0.9'. "
        "Ask for one trainer or route by name to see its parameters.",
        FindArguments,
        find,
        READS,
    ),
    Tool(
        "inspect",
        "Show a run, drop, model or version",
        "Show one thing whole: a run with its parameters, metrics, cost and, if it failed, the diagnosis; a drop (an "
        "uploaded dataset); a model with its versions; or a version with each link of its proof checked.",
        InspectArguments,
        inspect,
        READS,
    ),
    Tool(
        "compare",
        "Compare runs",
        "Show what differs between 2 to 20 runs (parameters, data, code, duration, dollars), and which is best by each "
        "metric of its saved model.",
        CompareArguments,
        compare,
        READS,
    ),
    Tool(
        "logs",
        "Read a run's log, with the diagnosis",
        "Show the diagnosis of a failed or hanging run, and the last lines of its log. `before` of an answer gets "
        "older lines.",
        LogArguments,
        logs,
        READS,
    ),
    Tool(
        "plan",
        "Plan a training, a promotion or a reproduction",
        "A dry run that costs nothing: train a trainer or route with chosen parameters, promote a run's model, or "
        "train a version again as a proof. The answer states the greatest cost, why it could not start now, and the id "
        "of the plan, which expires after 15 minutes. submit does what was planned.",
        PlanArguments,
        plan,
        CHANGES,
    ),
    Tool(
        "submit",
        "Submit what was planned",
        "Do what a plan says, for at most the cost that it states. A repeated call with the same plan returns the same "
        "run and starts nothing more.",
        SubmitArguments,
        submit,
        CHANGES,
    ),
    Tool(
        "cancel",
        "Cancel a run",
        "Stop a run that can no longer win. What it wrote until then is archived. A repeated call changes nothing.",
        CancelArguments,
        cancel,
        {**CHANGES, "destructiveHint": True},
    ),
    Tool(
        "wait",
        "Ask how runs stand, and when to ask again",
        "Show the states, costs and newest metrics of up to 10 runs at once. It answers immediately; sleep for "
        "ask_again_in_seconds before the next call. all_ended says that nothing more will happen.",
        WaitArguments,
        wait,
        READS,
    ),
)
BY_NAME = {tool.name: tool for tool in TOOLS}

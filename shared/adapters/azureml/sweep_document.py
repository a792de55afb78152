"""A sweep in Azure ML's schema, with Trainyard's additions: asha, eta and a budget. Reading the document returns an
equal sweep.
"""

from __future__ import annotations

import re
from typing import Any

from shared.jobs.readers.sweep import IN_TRIAL
from shared.jobs.search import CHOICE, NORMAL, RANDINT, RANDOM, SOBOL, Parameter, Stopping, Sweep

SCHEMA = "https://azuremlschemas.azureedge.net/latest/sweepJob.schema.json"
_INPUT = re.compile(r"\$\{\{\s*inputs\.([\w-]+)\s*\}\}")
_OWN = ("$schema", "type", "inputs", "limits")
Json = dict[str, Any]


def sweep_document(command_job: Json, sweep: Sweep) -> Json:
    """Return the sweep over this job."""
    trial = {key: command_job[key] for key in IN_TRIAL if key in command_job}
    trial["command"] = _INPUT.sub(
        lambda match: f"${{{{search_space.{match[1]}}}}}" if match[1] in sweep.space else match[0],
        str(command_job.get("command", "")),
    )
    inputs = {name: value for name, value in command_job.get("inputs", {}).items() if name not in sweep.space}
    limits = {
        "max_total_trials": sweep.most_trials,
        "max_concurrent_trials": sweep.at_once,
        "timeout": sweep.timeout_seconds,
        "trial_timeout": command_job.get("limits", {}).get("timeout"),
        "budget": sweep.budget,
    }
    rest = {key: value for key, value in command_job.items() if key not in (*IN_TRIAL, *_OWN)}
    document = {
        "$schema": SCHEMA,
        "type": "sweep",
        **rest,
        "trial": trial,
        "inputs": inputs,
        "search_space": {name: _parameter(parameter) for name, parameter in sweep.space.items()},
        "sampling_algorithm": _sampling(sweep),
        "objective": {"goal": "maximize" if sweep.maximize else "minimize", "primary_metric": sweep.metric},
        "limits": {key: value for key, value in limits.items() if value},
    }
    return document | ({"early_termination": _policy(sweep.stopping)} if sweep.stopping else {})


def _parameter(parameter: Parameter) -> Json:
    if parameter.kind == CHOICE:
        return {"type": CHOICE, "values": list(parameter.values)}
    if parameter.kind == RANDINT:
        return {"type": RANDINT, "upper": int(parameter.first)}
    names = ("mu", "sigma") if parameter.kind in NORMAL else ("min_value", "max_value")
    step = {"q": parameter.step} if parameter.step else {}
    return {"type": parameter.kind, names[0]: parameter.first, names[1]: parameter.second, **step}


def _sampling(sweep: Sweep) -> Json:
    seed = {} if sweep.seed is None else {"seed": sweep.seed}
    if sweep.sampling == SOBOL:
        return {"type": RANDOM, "rule": SOBOL, **seed}
    return {"type": sweep.sampling, **seed}


def _policy(stopping: Stopping) -> Json:
    """Return the early-stopping policy without fields at their defaults."""
    policy = {
        "evaluation_interval": stopping.interval,
        "delay_evaluation": stopping.delay,
        "eta": stopping.eta,
        "slack_factor": stopping.slack_factor,
        "slack_amount": stopping.slack_amount,
        "truncation_percentage": stopping.percentage,
    }
    nothing = Stopping(stopping.kind)
    default = {"evaluation_interval": nothing.interval, "eta": nothing.eta}
    return {"type": stopping.kind} | {key: value for key, value in policy.items() if value != default.get(key, 0)}

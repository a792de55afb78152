"""A trial of a sweep as a job: the sweep's trial with values in place of parameters. No I/O."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from statistics import NormalDist
from typing import Any

from emulators.azureml.bodies.sweep_body import Parameter
from emulators.azureml.kernel.checks import mapping
from emulators.azureml.kernel.models import Json, compute_name

SEARCHED = re.compile(r"\$\{\{\s*search_space\.([\w.-]+?)\s*\}\}")
Value = float | int | str | bool | None


def value(parameter: Parameter, drawn: float) -> Value:
    """Return the value of a parameter for a draw. A draw is the index of a choice; for the uniform kinds, a number
    between their ends; for the normal kinds, a probability.

    https://learn.microsoft.com/azure/machine-learning/reference-yaml-job-sweep#parameter-expressions
    """
    kind, numbers = parameter.kind, parameter.numbers
    if kind == "choice":
        chosen: Value = parameter.values[int(drawn)]
        return chosen
    if kind == "randint":
        return int(drawn)
    if "normal" in kind:
        drawn = NormalDist(numbers[0], numbers[1]).inv_cdf(min(max(drawn, 1e-12), 1 - 1e-12))
    if "log" in kind:
        drawn = math.exp(drawn)
    return round(drawn / numbers[-1]) * numbers[-1] if kind.startswith("q") else drawn


def example(parameter: Parameter) -> Value:
    """Return an allowed value of the parameter."""
    if parameter.kind in ("choice", "randint"):
        return value(parameter, 0)
    return value(parameter, 0.5 if "normal" in parameter.kind else parameter.numbers[0])


def trial(sweep: str, number: int, properties: Json, values: Mapping[str, Value]) -> Json:
    """Return the `properties` of a trial's job. Placeholders without a parameter in the search space stay, and the
    job refuses them."""
    body = mapping(properties, "trial")
    literals = {key: {"jobInputType": "literal", "value": str(each)} for key, each in values.items()}
    told = json.dumps(dict(values))
    limits = mapping(properties, "limits").get("trialTimeout")
    return {
        "jobType": "Command",
        "experimentName": properties.get("experimentName") or "Default",
        "displayName": f"{properties.get('displayName') or sweep}_{number}",
        "command": _filled(str(body.get("command") or ""), values),
        **{key: body.get(key) for key in ("codeId", "environmentId", "environmentVariables", "distribution")},
        "resources": body.get("resources") or properties.get("resources") or {},
        "limits": {"jobLimitsType": "Command", "timeout": limits} if limits else None,
        "computeId": properties.get("computeId") or compute_name(properties),
        "inputs": {**mapping(properties, "inputs"), **literals},
        "outputs": {key: _own_output(each) for key, each in mapping(properties, "outputs").items()},
        "tags": {"hyperparameters": told},
        "properties": {"hyperparameters": told},
    }


def _filled(command: str, values: Mapping[str, Any]) -> str:
    return SEARCHED.sub(lambda found: str(values[found[1]]) if found[1] in values else found[0], command)


def _own_output(body: Any) -> Json:
    """Return an output of one trial. A shared output location gets a folder for each trial."""
    said = body if isinstance(body, dict) else {}
    given = {key: each for key, each in said.items() if key not in ("assetName", "assetVersion")}  # the sweep's to make
    uri = given.get("uri")
    if not uri or "${{name}}" in uri:
        return given
    return {**given, "uri": f"{str(uri).rstrip('/')}/${{{{name}}}}/"}

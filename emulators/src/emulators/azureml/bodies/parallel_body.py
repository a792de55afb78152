"""Parses a parallel step into the command of the driver. The step's own settings override its component's. No I/O.

The service runs a parallel step as one job, whose command is `python driver/amlbi_main.py` with the settings as
options.

https://learn.microsoft.com/azure/machine-learning/reference-yaml-job-parallel
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from emulators.azureml.kernel.checks import choice, mapping
from emulators.azureml.kernel.errors import BadRequest, among
from emulators.azureml.kernel.models import Json

DRIVER = "python driver/amlbi_main.py"
MOST_WORKERS = 64  # of one job; each is a process of this machine
LEVELS = ("INFO", "WARNING", "DEBUG")
_SIZE = re.compile(r"(\d+)\s*([kmg]b)?", re.IGNORECASE)
_UNITS = {"": 1, "kb": 1024, "mb": 1024**2, "gb": 1024**3}
_INPUT = re.compile(r"\$\{\{\s*inputs\.([\w.-]+)\s*\}\}")


def task(step: Json, component: Json) -> Json:
    """Return the task of a parallel step: its component's task, with the keys that the step overrides."""
    own = {key: value for key, value in mapping(step, "task").items() if value is not None}
    return {**mapping(component, "task"), **own}


def input_name(step: Json, component: Json) -> str:
    """Return the name of the input that is split into mini-batches. Raises BadRequest if there is none."""
    said = str(step.get("input_data") or component.get("input_data") or "")
    if found := _INPUT.fullmatch(said):
        return found[1]
    raise BadRequest(f"input_data is {said[:80]!r}; write ${{{{inputs.NAME}}}}, the input to split into mini-batches.")


def command(step: Json, component: Json, inputs: Mapping[str, Json]) -> str:
    """Return the command of the step's job. `inputs` are the job's inputs. Raises BadRequest for an invalid value."""
    work, name = task(step, component), input_name(step, component)
    choice(str(work.get("type")), "task.type", ("run_function",))
    if not isinstance(work.get("entry_script"), str):
        raise BadRequest(
            f"task.entry_script is {work.get('entry_script')!r:.80}; name the script with run(mini_batch)."
        )
    given = inputs.get(name)
    if given is None or given.get("jobInputType") == "literal":
        raise BadRequest(f"input_data names {name!r}, which is not data; the step has: {among(_data(inputs))}.")
    options = {
        "scoring_module_name": work["entry_script"],
        "input_type": given["jobInputType"],
        **dict(_numbers(step, component)),
        "partition_keys": _keys(_said(step, component, "partition_keys")),
        "logging_level": choice(
            str(_said(step, component, "logging_level") or "INFO").upper(), "logging_level", LEVELS
        ),
    }
    words = [DRIVER, f"--input_data ${{{{inputs.{name}}}}}"]
    words += [f"--{key} {shlex.quote(str(value))}" for key, value in options.items() if value not in (None, "")]
    if to := work.get("append_row_to"):
        words.append(f"--append_row_to {to}")
    return " ".join([*words, str(work.get("program_arguments") or "").replace("\n", " ")]).strip()


def resources(step: Json, component: Json) -> Json:
    """Return the resources of the step's job."""
    made = {**mapping(component, "resources"), **mapping(step, "resources")}
    return {key: value for key, value in made.items() if value is not None}


def _numbers(step: Json, component: Json) -> Iterator[tuple[str, int | None]]:
    """Yield the driver's options that are numbers. None means the driver's default."""
    retries = {**mapping(component, "retry_settings"), **mapping(step, "retry_settings")}
    workers = _whole("max_concurrency_per_instance", _said(step, component, "max_concurrency_per_instance"), 1) or 1
    made = resources(step, component)
    nodes = _whole("instance_count", made.get("instance_count", made.get("instanceCount")), 1) or 1
    if nodes * workers > MOST_WORKERS:
        raise BadRequest(
            f"{nodes} nodes with {workers} processes each; all of them are processes of this machine, which starts "
            f"at most {MOST_WORKERS} for a parallel job."
        )
    most = _whole("retry_settings.max_retries", retries.get("max_retries"), 0)
    yield "node_count", nodes
    yield "process_count_per_node", workers
    yield "mini_batch_size", size(_said(step, component, "mini_batch_size"))
    yield "run_max_try", None if most is None else most + 1
    yield "run_invocation_timeout", _whole("retry_settings.timeout", retries.get("timeout"), 1)
    for key in ("error_threshold", "mini_batch_error_threshold"):
        yield key, _whole(key, _said(step, component, key), -1)


def size(said: Any) -> int | None:
    """Return a number of files, or of bytes of a table: 5, 10kb, 100 MB. None means the default."""
    if not said:  # the SDK sends 0 for a component without a size
        return None
    found = _SIZE.fullmatch(str(said).strip())
    if not found or not int(found[1]):
        raise BadRequest(f"mini_batch_size is {said!r:.80}; write a number of files, or a size such as 10kb or 1mb.")
    return int(found[1]) * _UNITS[(found[2] or "").lower()]


def _keys(said: Any) -> str:
    """Return the columns as JSON. MLClient sends them as a string of JSON."""
    try:
        keys = json.loads(said) if isinstance(said, str) else said
    except ValueError:
        keys = said
    if not keys:
        return ""
    if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
        raise BadRequest(f"partition_keys is {said!r:.80}; write a list of names of columns.")
    return json.dumps(keys)


def _whole(key: str, said: Any, least: int) -> int | None:
    """Return a whole number, which MLClient may send as a string. Raises BadRequest for any other value."""
    if said is None:
        return None
    text = str(said).strip()
    if isinstance(said, bool) or not re.fullmatch(r"-?\d{1,9}", text) or int(text) < least:
        raise BadRequest(f"{key} is {said!r:.80}; it must be a whole number of at least {least}.")
    return int(text)


def _said(step: Json, component: Json, key: str) -> Any:
    return step[key] if step.get(key) is not None else component.get(key)


def _data(inputs: Mapping[str, Json]) -> list[str]:
    return [name for name, given in inputs.items() if given.get("jobInputType") != "literal"]

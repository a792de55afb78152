"""An Azure ML command job (Microsoft's YAML schema) as a plain mapping: its words, and what can be asked of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

DROPS_DATASTORE = "drops"
OUTPUT_DATASTORE = "workspaceblobstore"
SCHEMA = "https://azuremlschemas.azureedge.net/latest/commandJob.schema.json"
TRAINERS_ENVIRONMENT = (
    "azureml:trainyard@latest"  # in a template: the environment that trainers/environment.yaml describes
)
LAUNCHER = "elastic.launch"  # a job whose command starts this is elastic: it meets the others of its run by itself
LEFT_OUTPUT = "checkpoints"  # the output that stays where the job wrote it: large, and of use to this run only
FROM_MODEL_TAG = "trainyard.from_model"  # in a template: the flag by which its script starts from a model's folder
FROM_MODEL = "from_model"  # the input that names that folder
HOUR_PROPERTY = "trainyard.hour"  # the hour in which the job's run was made; Azure ML lists jobs by it

_VALUE_OF = re.compile(r"\$\{\{\s*(inputs|outputs)\.([\w-]+)\s*\}\}")
_OPTIONAL = re.compile(r"\$\[\[.*?\]\]", re.DOTALL)  # left out where one of its values is not given

Job = dict[str, Any]


def mapping(value: Any) -> Job:
    """A copy of the value if it is a mapping, else an empty one."""
    return dict(value) if isinstance(value, dict) else {}


def values_it_lacks(job: Mapping[str, Any]) -> list[str]:
    """What the command asks for and the job does not have: `inputs.data`, `outputs.models`."""
    known = {f"{group}.{name}" for group in ("inputs", "outputs") for name in mapping(job.get(group))}
    asked = (f"{group}.{name}" for group, name in _VALUE_OF.findall(_OPTIONAL.sub("", str(job.get("command", "")))))
    return [name for name in dict.fromkeys(asked) if name not in known]


def is_elastic(job: Mapping[str, Any]) -> bool:
    return LAUNCHER in str(job.get("command", ""))


def nodes(job: Mapping[str, Any]) -> int:
    """How many nodes the job takes."""
    count = mapping(job.get("resources")).get("instance_count", 1)
    return count if type(count) is int else 1


def timeout(job: Mapping[str, Any], otherwise: int) -> int:
    """The job's time limit in seconds."""
    seconds = mapping(job.get("limits")).get("timeout")
    return seconds if type(seconds) is int else otherwise


def cluster(job: Mapping[str, Any]) -> str:
    return str(job.get("compute") or "").removeprefix("azureml:")


def is_registered(code: Any) -> bool:
    """Whether Azure ML knows this code already."""
    return str(code).startswith("azureml:") and not str(code).startswith("azureml://datastores/")


def uses_own_code(job: Mapping[str, Any]) -> bool:
    """Whether the job's code is still to be registered: the trainers/ snapshot, or a folder that was sent."""
    return bool(job.get("code")) and not is_registered(job["code"])


def environment_words(job: Mapping[str, Any]) -> str:
    """The job's environment in words: its name, or what it describes itself."""
    described = job.get("environment")
    if not isinstance(described, dict):
        return str(described or "")
    if described.get("build"):
        return "a build context of its own"
    image = str(described.get("image") or "an image of its own")
    return f"{image} with a conda file" if described.get("conda_file") else image


def uses_own_environment(job: Mapping[str, Any]) -> bool:
    return job.get("environment") == TRAINERS_ENVIRONMENT


def output_path(run: str, name: str, is_file: bool = False) -> str:
    """The folder, or the file, of a run's output that has no path of its own."""
    return f"azureml://datastores/{OUTPUT_DATASTORE}/paths/trainyard/{run}/{name}" + ("" if is_file else "/")


def is_relative(path: Any) -> bool:
    return isinstance(path, str) and ":" not in path and not path.startswith("/")


def again(job: Job, old: str, new: str, tag: str = "trainyard.retry_of", shared: tuple[str, ...] = ()) -> Job:
    """The same job under another run's name, with output folders of its own but for those that they share."""
    outputs = {
        name: value if name in shared else _moved(value, name, new)
        for name, value in mapping(job.get("outputs")).items()
    }
    repeated = {**job, "name": new, "tags": {**mapping(job.get("tags")), tag: old}}
    return {**repeated, "outputs": outputs} if outputs else repeated


def _moved(output: Any, name: str, new: str) -> Any:
    """The output in the new run's folder, if it was in the folder of any run: one that goes on shares another's."""
    path = str(output.get("path", "")) if isinstance(output, dict) else ""
    any_run = re.escape(output_path("*", name, is_file=True)).replace(re.escape("*"), "[^/]+")
    if not re.fullmatch(f"{any_run}/?", path):
        return output
    return {**output, "path": output_path(new, name, is_file=not path.endswith("/"))}


def resolve(job: Job, code: str | None, environment: str | None, code_digest: str) -> Job:
    """The job with the ids filled in: code where it names none, environment where it names the trainers' own."""
    resolved = dict(job)
    if code is not None and not is_registered(job.get("code", "")):
        resolved["code"] = code
        resolved["tags"] = {**mapping(job.get("tags")), "trainyard.code": code_digest}
    if environment is not None and uses_own_environment(job):
        resolved["environment"] = environment
    return resolved

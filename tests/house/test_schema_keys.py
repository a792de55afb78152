"""Azure ML's schema stays at the edge: in shared/, only the readers and the writer contain its keys."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[2] / "shared"

# The modules that read or write the schema: those that turn documents into jobs, and the client of Azure ML.
EDGE = ("jobs/readers", "jobs/batchai", "adapters/azureml")

# Keys of azure-ai-ml's schemas of a command job and of what lies in one (the second test holds this list to them), and
# of sweeps and pipelines.
KEYS = {
    "$schema", "auto_delete_setting", "compute", "conda_file", "display_name", "distribution", "docker_args",
    "dockerfile_path", "environment_variables", "experiment_name", "inference_config", "instance_count",
    "instance_type", "intellectual_property", "job_tier", "latest_version", "liveness_route", "log_dir",
    "log_files", "max_instance_count", "msi_resource_id", "os_type", "parameter_server_count", "parent_job_name",
    "path_on_compute", "process_count_per_instance", "queue_settings", "readiness_route", "resources",
    "scoring_route", "shm_size", "ssh_public_keys", "worker_count", "early_termination", "max_concurrent_trials",
    "max_total_trials", "sampling_algorithm", "search_space", "trial_timeout",
}  # fmt: skip

# Keys that are also our own words, the API's or common words.
ORDINARY = {
    "build", "client_id", "code", "command", "created_at", "created_by", "created_by_type", "creation_context",
    "datastore", "description", "endpoint", "environment", "error_message", "id", "identity", "image", "inputs",
    "last_modified_at", "last_modified_by", "last_modified_by_type", "limits", "locations", "mode", "name", "nodes",
    "object_id", "outputs", "parameters", "path", "port", "properties", "services", "status", "tags", "timeout",
    "type", "value", "version",
}  # fmt: skip

# Files where such a word means something else: the file, the words, and their meaning.
OTHER_MEANINGS = {
    "api/catalogue.py": {"$schema"},  # of JSON Schema
    "notices/render.py": {"$schema"},  # of an Adaptive Card
    "api/imports.py": {"compute"},  # a field of the API's answer
    "jobs/limits.py": {"queue_settings", "docker_args"},  # what a routes file may allow
    "jobs/layers.py": {"queue_settings"},
    "jobs/route_sweep.py": {"search_space"},  # of a route's sweep
    "jobs/torchrun.py": {"distribution"},  # the field of a JobSpec, which is missing
    "adapters/sweeps/studies.py": {"distribution"},  # a field of Optuna's journals
    "models/signature.py": {"resources"},  # of a signature
}


def words(path: Path) -> Iterator[str]:
    """Every key in the module's strings except docstrings: the whole string, or a part of a dotted path."""
    tree = ast.parse(path.read_text("utf-8"))
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield from node.value.strip(".").split(".") if " " not in node.value else ()


# The keys that code would read from a job's document; and the files where other mappings have such a key.
ASKED = {"code", "command", "environment", "inputs", "limits", "outputs", "properties", "services", "tags"}
OTHER_MAPPINGS = {
    "agents/reading.py": {"properties"},  # of a JSON Schema
    "agents/shown_run.py": {"code"},  # of why a run waits
    "grants/guest.py": {"code"},  # of why a run waits
    "diagnosis/next_steps.py": {"services"},  # of what a job has that reaches beyond it
    "models/bom.py": {"limits"},  # of a model, as people state them
    "models/card.py": {"command"},  # of our own provenance
    "adapters/tables/drop_table.py": {"code"},  # of a row
    "api/openapi.py": {"properties"},  # of a JSON Schema
    "jobs/routes_file.py": {"limits"},  # of the routes file
    "runs/intake/start_blockers.py": {"code"},  # of a reason
    "runs/progress/submit.py": {"environment"},  # of a run's columns
    "runs/results/node_facts.py": {"environment"},  # of the report of pip inspect
    "runs/results/artifacts.py": {"outputs"},  # of a manifest
}


def asked_for(path: Path) -> Iterator[str]:
    """The keys that a module reads from a mapping."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        key: ast.expr | None = node.slice if isinstance(node, ast.Subscript) else None
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("get", "pop"):
            key = node.args[0] if node.args else None
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            yield key.value


def is_edge(path: Path) -> bool:
    return path.relative_to(SHARED).as_posix().startswith(EDGE)


def test_only_the_edge_knows_the_schema() -> None:
    """No module except the readers and the writer names a key of Azure ML's job schema."""
    inside = {path.relative_to(SHARED).as_posix(): path for path in SHARED.rglob("*.py") if not is_edge(path)}
    named = {place: set(words(path)) & KEYS - OTHER_MEANINGS.get(place, set()) for place, path in inside.items()}
    asked = {place: set(asked_for(path)) & ASKED - OTHER_MAPPINGS.get(place, set()) for place, path in inside.items()}
    assert inside
    assert {place: found for place, found in named.items() if found} == {}
    assert {place: found for place, found in asked.items() if found} == {}


@pytest.mark.filterwarnings("ignore")
def test_the_keys_are_the_schemas() -> None:
    """Each key of azure-ai-ml's command job is in one of the lists."""
    from azure.ai.ml._schema.job.command_job import CommandJobSchema

    assert keys_of(CommandJobSchema) - KEYS == ORDINARY


def keys_of(schema: type) -> set[str]:
    """The keys of a marshmallow schema and of all nested schemas."""
    import marshmallow

    seen: set[type] = set()
    keys: set[str] = set()

    def take(schema: marshmallow.Schema) -> None:
        if type(schema) not in seen:
            seen.add(type(schema))
            for name, each in schema.fields.items():
                keys.add(each.data_key or name)
                look_into(each)

    def look_into(each: marshmallow.fields.Field) -> None:
        if isinstance(each, marshmallow.fields.Nested):
            take(each.schema)
        inside = [getattr(each, name, None) for name in ("inner", "value_field", "key_field")]
        for other in [*getattr(each, "_union_fields", []), *inside]:
            if other is not None:
                look_into(other)

    take(schema(context={"base_path": "/"}))
    return keys


def test_a_key_is_found(tmp_path: Path) -> None:
    """A key is found as a string, in a path, and where a mapping is read; it is not found in a sentence."""
    file = tmp_path / "module.py"
    file.write_text('"""About inputs."""\na = job["resources"]\nb = f"x.{c}.shm_size"\nd = "its inputs are many"\n')
    assert set(words(file)) & KEYS == {"resources", "shm_size"}
    file.write_text('a = job["inputs"]["data"]\nb = job.get("outputs", {})\n')
    assert set(asked_for(file)) & ASKED == {"inputs", "outputs"}

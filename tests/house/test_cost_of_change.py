"""Things that docs/development.md lists as declared once are named in no other file, so that a change edits few
files.

The tests read the source as text, and import only declarations.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from shared.api.registry import GROUPS
from shared.kernel.parts import columns
from shared.messages.declared import EVENT_QUEUES, QUEUES, by_queue
from shared.runs.model import Run
from tests.gate.scripts import load

ROOT = Path(__file__).resolve().parents[2]
APP = ("shared", "functions", "infra", "local", "cli", "page/views")
EMULATOR = ("emulators/src/emulators/azureml",)
ENDINGS = {".py", ".bicep", ".js", ".jsx"}


def files(folders: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Yield the path and the text of each source file."""
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in ENDINGS:
                yield path.relative_to(ROOT).as_posix(), path.read_text("utf-8")


def naming(pattern: str, folders: tuple[str, ...] = APP) -> set[str]:
    """Return the files whose text matches the pattern."""
    return {path for path, text in files(folders) if re.search(pattern, text)}


@pytest.mark.parametrize("queue", [name for name in QUEUES if name not in (*EVENT_QUEUES, "checks")])
def test_a_queue_is_named_by_its_messages(queue: str) -> None:
    """In files written by hand, only messages name a queue. The two other files are generated. (`checks` is also a
    key of answers.)"""
    generated = {"shared/messages/declared.py", "infra/modules/storage.bicep"}
    found = naming(rf"[\"']{queue}[\"']") - generated
    assert {path for path in found if not path.endswith(("/messages.py", "kernel/message.py"))} == {
        "shared/messages/old_queues.py"  # the targets of messages in the previous version's queues
    } & found


def test_a_new_queue_is_generated(monkeypatch: pytest.MonkeyPatch) -> None:
    """From a message that names a queue, the generator writes the queue for the triggers and Azure."""
    queue_names = load("queue_names")
    monkeypatch.setattr(queue_names, "by_queue", lambda: by_queue() | {"forgetting": []})
    python, bicep = queue_names.pages().values()
    assert re.search(r'^QUEUES = .*"forgetting"\)$', python, re.MULTILINE)
    assert "\n  'forgetting'\n]" in bicep


def test_the_names_of_the_queues_are_up_to_date() -> None:
    """If this fails, run .ci/generate.py."""
    assert {path: path.read_text("utf-8") for path in load("queue_names").pages()} == load("queue_names").pages()


def test_an_operation_is_named_where_it_is_declared_and_answered() -> None:
    """functions/ names no operation, and no other module of shared/ does, except the callers of operations."""
    found = {}
    callers = ("shared/agents/", "shared/grants/guest.py")  # tools call operations by name, and grants allow them
    texts = {path: text for path, text in files(("shared", "functions")) if not path.startswith(callers)}
    for operation in (each for group in GROUPS for each in group.operations if each.name.count("_") > 0):
        answers = f"{operation.module.replace('.', '/')}.py"
        named = {path for path, text in texts.items() if re.search(rf'"{operation.name}"', text)}
        if others := {path for path in named if not path.endswith("operations.py") and path != answers}:
            found[operation.name] = others
    assert found == {}


def test_a_labeled_field_is_shown_without_being_named() -> None:
    """The API, the command line and the page show such a field by its label, without naming it."""
    labeled = [name for name, each in columns(Run).items() if each.label]
    shown = ("cli/show", "page/views/run", "page/views/runs.jsx", "shared/api/rows.py", "shared/api/records.py")
    assert {name for name in labeled if naming(rf"(?<![\w.])run(\.{name}\b|\[\"{name}\"\])", shown)} == set()
    assert labeled


def test_a_type_of_job_is_declared_in_one_table_of_the_emulator() -> None:
    """Besides the table, the scheduler names the types with child jobs, and pipelines make sweeps of their steps."""
    assert naming(r'"(?:Pipeline|Sweep)"', EMULATOR) == {
        "emulators/src/emulators/azureml/bodies/any_job.py",
        "emulators/src/emulators/azureml/bodies/enumerations.py",  # Microsoft's list
        "emulators/src/emulators/azureml/scheduling/scheduler.py",
        "emulators/src/emulators/azureml/workspace/steps.py",
    }


def test_one_module_builds_the_adapters_of_azure_ml() -> None:
    """A second backend would be built in the same module. Outside the adapters, no other module imports Azure ML's."""
    imports = r"shared\.adapters\.azureml|from shared\.adapters import azureml"
    found = {
        path for path in naming(rf"(?m)^\s*(?:from|import) .*(?:{imports})") if not path.startswith("shared/adapters/")
    }
    assert found == {"shared/wiring.py"}

"""A worker of a parallel job: calls the entry script's `init()`, `run(mini_batch)` and `shutdown()` for the driver.

This script runs in the job's own environment, with Python 3.7 or later, and imports nothing of the emulators. The
driver (parallel_run.py) writes a line of JSON to standard input for each call, and reads the answer from standard
output. The entry script's own output goes to standard error.

A mini-batch of a folder is a list of the paths of its files. A mini-batch of a table is a pandas DataFrame with rows of
about --mini_batch_size bytes, or with all rows of one value of the --partition_keys.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import importlib.util
import inspect
import json
import logging
import os
import sys
import traceback
import types
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Dict

Json = Dict[str, Any]
FILES_PER_BATCH, BYTES_PER_BATCH = 10, 1024 * 1024  # defaults, as documented for azure-ai-ml's parallel_run_function


class Unfit(Exception):
    """An invalid value from the user. The message has the value."""


class Context:
    """The second argument of `run(mini_batch, context)`."""

    def __init__(self, batch: Json) -> None:
        self.minibatch_index = self.mini_batch_index = batch["index"]
        self.partition_key_value: Json = batch.get("partition") or {}


class ScriptRunner:
    """The entry script in this process. `settings` are the driver's options that a worker needs."""

    def __init__(self, settings: argparse.Namespace) -> None:
        self._settings = settings
        self._script = types.ModuleType("entry_script")

    def plan(self, _: Any) -> Json:
        return {"batches": list(planned(self._settings))}

    def init(self, _: Any) -> Json:
        """Import the entry script, and call its `init()` if it has one."""
        name = self._settings.scoring_module_name
        sys.modules["azureml_user.parallel_run"] = user_module(self._settings.logging_level)
        sys.modules["azureml_user"] = types.ModuleType("azureml_user")
        sys.path.insert(0, str(Path(name).resolve().parent))
        found = importlib.util.spec_from_file_location(Path(name).stem, name)
        if not found or not found.loader or not Path(name).is_file():
            raise Unfit(f"there is no entry script {name} in the code")
        self._script = importlib.util.module_from_spec(found)
        sys.modules[found.name] = self._script
        found.loader.exec_module(self._script)
        if not callable(getattr(self._script, "run", None)):
            raise Unfit(f"{name} has no function run(mini_batch)")
        getattr(self._script, "init", lambda: None)()
        return {}

    def batch(self, batch: Json) -> Json:
        """Call `run` with a mini-batch. Returns its rows as text, and the number of its elements."""
        run: Callable[..., Any] = self._script.run
        wanted = len(inspect.signature(run).parameters)
        returned = run(*(self._content(batch), Context(batch))[: max(1, min(2, wanted))])
        rows, count = rows_of(returned)
        return {"rows": rows if self._settings.append_row_to else [], "count": count}

    def end(self, _: Any) -> Json:
        getattr(self._script, "shutdown", lambda: None)()
        return {}

    def _content(self, batch: Json) -> Any:
        if "files" in batch:
            return batch["files"]
        table = read_table(self._settings.input_data)
        if "rows" in batch:
            first, end = batch["rows"]
            return table.iloc[first:end].reset_index(drop=True)
        chosen = table
        for key, value in batch["partition"].items():
            chosen = chosen[chosen[key] == value]
        return chosen.reset_index(drop=True)


def planned(settings: argparse.Namespace) -> Iterator[Json]:
    """Yield the mini-batches of the input, each with its index, its number of items, and its files or rows."""
    keys = json.loads(settings.partition_keys) if settings.partition_keys else []
    path, is_table = Path(settings.input_data), settings.input_type == "mltable"
    if is_table:
        files = tables().listed(path)
    else:
        files = [path] if path.is_file() else sorted(each for each in path.rglob("*") if each.is_file())
    if is_table and not files:
        table = read_table(settings.input_data)
        yield from by_keys(table, keys) if keys else by_size(table, settings)
        return
    if keys:
        raise Unfit("partition_keys need an input of type mltable, with rows")
    size = settings.mini_batch_size or FILES_PER_BATCH
    for index, first in enumerate(range(0, len(files), size)):
        part = [str(file) for file in files[first : first + size]]
        yield {"index": index, "items": len(part), "files": part}


def by_size(table: Any, settings: argparse.Namespace) -> Iterator[Json]:
    rows, size = len(table), settings.mini_batch_size or BYTES_PER_BATCH
    each = max(1, size * rows // max(1, table.attrs["bytes"]))
    for index, first in enumerate(range(0, rows, each)):
        end = min(rows, first + each)
        yield {"index": index, "items": end - first, "rows": [first, end]}


def by_keys(table: Any, keys: Sequence[str]) -> Iterator[Json]:
    missing = [key for key in keys if key not in table.columns]
    if missing:
        raise Unfit(f"the table has no column {missing[0]!r} for partition_keys; it has {', '.join(table.columns)}")
    for index, (values, part) in enumerate(table.groupby(list(keys), sort=True)):
        values = values if isinstance(values, tuple) else (values,)  # pandas before 2.0 gives the value of a single key
        plain = [value.item() if hasattr(value, "item") else value for value in values]
        yield {"index": index, "items": len(part), "partition": dict(zip(keys, plain))}


def rows_of(returned: Any) -> tuple[list[str], int]:
    """Return the rows in the result of `run` as text, and their number. A row of a DataFrame is its values,
    separated by spaces."""
    if hasattr(returned, "to_csv") and hasattr(returned, "columns"):
        text = returned.to_csv(sep=" ", header=False, index=False)
        return text.splitlines(), len(returned)
    if (
        isinstance(returned, (str, bytes, dict))
        or not hasattr(returned, "__len__")
        or not hasattr(returned, "__iter__")
    ):
        raise Unfit(
            f"run() returned a {type(returned).__name__}; it must return a list, a tuple, an array or a DataFrame"
        )
    rows = [str(each) for each in returned]
    return rows, len(rows)


def user_module(level: str) -> types.ModuleType:
    """Return Azure ML's module azureml_user.parallel_run with the part that entry scripts use: a logger."""
    made = types.ModuleType("azureml_user.parallel_run")
    logging.basicConfig(level=level, format="%(asctime)s %(levelname)s %(message)s")

    class EntryScript:
        logger = logging.getLogger("ParallelRunStep")
        working_dir = str(Path.cwd())

    made.EntryScript = EntryScript  # type: ignore[attr-defined]
    return made


def call(worker: ScriptRunner, message: Json) -> Json:
    """Return the answer to a message, which names one function of the worker."""
    [(name, value)] = message.items()
    try:
        answer: Json = getattr(worker, name)(value)
    except Unfit as error:
        return {"error": str(error)}
    except Exception as error:  # noqa: BLE001 - whatever the entry script raises is the outcome
        traceback.print_exc()
        return {"error": f"{type(error).__name__}: {error}"[:500]}
    return answer


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    for name in ("scoring_module_name", "input_data", "input_type", "partition_keys", "append_row_to"):
        parser.add_argument(f"--{name}", default="")
    parser.add_argument("--logging_level", default="INFO")
    parser.add_argument("--mini_batch_size", type=int, default=0)
    worker = ScriptRunner(parser.parse_known_args(argv)[0])
    answers, messages = os.fdopen(os.dup(1), "w", encoding="utf-8"), os.fdopen(os.dup(0), encoding="utf-8")
    os.dup2(2, 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for line in messages:
        answer = call(worker, json.loads(line))
        answers.write(json.dumps(answer, default=str) + "\n")
        answers.flush()


# --- tables -----------------------------------------------------------------------------------------------------------


def tables() -> types.ModuleType:
    return importlib.import_module("parallel_table")  # beside this file, where Python looks first


@functools.lru_cache(maxsize=None)
def read_table(folder: str) -> Any:
    return tables().read(Path(folder))


if __name__ == "__main__":
    main(sys.argv[1:])

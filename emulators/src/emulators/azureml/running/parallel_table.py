"""Reads the table in a folder with a file MLTable into a pandas DataFrame, as the package mltable does, or lists its
files.

This script runs in the job's own environment, which must have pandas and PyYAML, and imports nothing of the emulators.
Unsupported features are refused by name. https://learn.microsoft.com/azure/machine-learning/reference-yaml-mltable
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, Dict

Json = Dict[str, Any]
EXTRACT = ("extract_columns_from_partition_format", "extract_partition_format_into_columns")


def read(folder: Path) -> Any:
    """Return the table. `attrs["bytes"]` is the size of its files. Raises ValueError for unsupported features."""
    pd = _module("pandas")
    files, steps = _described(folder)
    reading = [step for step in steps if step[0] in READERS]
    if len(reading) != 1 or not files:
        raise ValueError(f"the MLTable has {len(files)} files and {len(reading)} of {', '.join(READERS)}")
    frames = [_frame(folder, file, reading[0], steps) for file in files]
    table = pd.concat(frames, ignore_index=True)
    for name, value in steps:
        if name not in (reading[0][0], *EXTRACT):
            table = CHANGES[_known(name)](table, value)
    table.attrs["bytes"] = sum(file.stat().st_size for file in files)
    return table


def listed(folder: Path) -> list[Path]:
    """Return the files of an MLTable without transformations, whose mini-batches are files. Empty for a table of
    rows. Raises ValueError for unsupported features."""
    files, steps = _described(folder)
    return [] if steps else files


def _described(folder: Path) -> tuple[list[Path], list[tuple[str, Any]]]:
    """Return the files and the transformations in the file MLTable."""
    yaml = _module("yaml")
    described = folder / "MLTable"
    if not described.is_file():
        raise ValueError("the input is of type mltable, and its folder has no file MLTable")
    document = yaml.safe_load(described.read_text("utf-8"))
    files = list(files_of(folder, document.get("paths") or []))
    return files, [step for each in document.get("transformations") or [] for step in named(each)]


def _module(name: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise ValueError(f"an input of type mltable needs {error.name} in the job's environment") from error


def _frame(folder: Path, file: Path, reading: tuple[str, Any], steps: list[tuple[str, Any]]) -> Any:
    name, options = reading[0], reading[1] or {}
    frame = READERS[name](file, options)
    place = file.relative_to(folder).as_posix()
    if options.get("include_path_column"):
        frame.insert(0, "Path", f"/{place}")
    for step, value in steps:
        if step in EXTRACT:
            for column, text in parts_of(place, value["partition_format"]).items():
                frame[column] = text
    return frame


def files_of(folder: Path, paths: list[Json]) -> Iterator[Path]:
    """Yield the files of the table, sorted by name within each pattern."""
    for path in paths:
        [(kind, said)] = path.items()
        if re.match(r"\w+://", str(said)):
            raise ValueError(f"the MLTable names {str(said)[:100]}; only files beside it can be read here")
        if kind == "file":
            yield folder / said
        else:
            pattern = f"{str(said).rstrip('/')}/**/*" if kind == "folder" else str(said)
            pattern = pattern[2:] if pattern.startswith("./") else pattern
            yield from sorted(each for each in folder.glob(pattern) if each.is_file() and each.name != "MLTable")


def named(step: Any) -> Iterator[tuple[str, Any]]:
    """Yield the name and value of a transformation, which is a mapping with one key, or a name."""
    yield from step.items() if isinstance(step, dict) else [(str(step), None)]


def parts_of(place: str, form: str) -> dict[str, str]:
    """Return the columns in a path by a format such as {Store}/{Brand}/{name}.{extension}."""
    if ":" in form:
        raise ValueError(f"the partition_format {form!r} has a date, which is not supported here")
    pattern = re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^/]+?)", re.escape(form))
    found = re.search(f"(?:^|/){pattern}$", place)
    if not found:
        raise ValueError(f"the file {place!r} does not fit the partition_format {form!r}")
    return found.groupdict()


def _delimited(file: Path, options: Json) -> Any:
    pd = import_module("pandas")

    header = None if options.get("header") == "no_header" else 0
    frame = pd.read_csv(
        file,
        sep=options.get("delimiter") or ",",
        encoding=options.get("encoding") or "utf8",
        header=header,
        keep_default_na=not options.get("empty_as_string"),
    )
    return frame if header == 0 else frame.rename(columns=lambda number: f"Column{number + 1}")


def _parquet(file: Path, _: Json) -> Any:
    pd = import_module("pandas")

    return pd.read_parquet(file)


def _lines(file: Path, options: Json) -> Any:
    pd = import_module("pandas")

    return pd.read_json(file, lines=True, encoding=options.get("encoding") or "utf8")


def _columns(said: Any) -> list[str]:
    return [said] if isinstance(said, str) else list(said)


def _converted(table: Any, said: Any) -> Any:
    kinds = {"int": "int64", "long": "int64", "float": "float64", "string": "str", "boolean": "bool"}
    for each in said if isinstance(said, list) else [said]:
        for column in _columns(each["columns"]):
            kind = each["column_type"]
            if kind not in kinds:
                raise ValueError(
                    f"the column_type {str(kind)[:80]!r} is not supported here; supported: {', '.join(kinds)}"
                )
            table[column] = table[column].astype(kinds[kind])
    return table


def _known(name: str) -> str:
    if name not in CHANGES:
        known = ", ".join((*READERS, *CHANGES, *EXTRACT))
        raise ValueError(f"the transformation {name[:80]!r} is not supported here; supported: {known}")
    return name


READERS: dict[str, Callable[[Path, Json], Any]] = {
    "read_delimited": _delimited,
    "read_parquet": _parquet,
    "read_json_lines": _lines,
}
CHANGES: dict[str, Callable[[Any, Any], Any]] = {
    "keep_columns": lambda table, said: table[_columns(said)],
    "drop_columns": lambda table, said: table.drop(columns=_columns(said), errors="ignore"),
    "take": lambda table, said: table.head(int(said)),
    "skip": lambda table, said: table.iloc[int(said) :],
    "convert_column_types": _converted,
}

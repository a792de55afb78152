"""Drops' data over HTTP: generations, files, differences."""

from __future__ import annotations

from dataclasses import fields
from typing import Annotated

from msgspec import Meta, Struct

from shared.api.requests import DropName, RouteName
from shared.drops import diff, versions
from shared.drops.diff import DataFile
from shared.drops.model import Generation
from shared.drops.ports import DropPorts
from shared.kernel.drop_key import DropKey
from shared.kernel.encode import Json, model_of, plain_fields

MOST_NAMED = 1000  # files listed per part of a difference, and per page of a list

_Ref = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=340,  # two such names, percent-encoded, fit into a request line
        description="<route>/<name>, <route>/<name>@<generation>, <route>/<name>@now, or a run.",
    ),
]

GenerationAnswer = model_of(__name__, Generation, {}, ("folder",))
DataFileAnswer = model_of(__name__, diff.DataFile, {})


class DiffQuery(Struct):
    a: _Ref
    b: _Ref


class FilesQuery(Struct):
    of: _Ref
    offset: Annotated[int, Meta(ge=0, le=1 << 30, description="How many files to leave out, in order of path.")] = 0


class FilesAnswer(Struct):
    of: str
    count: int
    bytes: int
    files: Annotated[list[DataFileAnswer], Meta(description="By path, up to 1,000 a page.")]  # type: ignore[valid-type]


class FilesPart(Struct):
    count: int
    bytes: int
    files: Annotated[list[DataFileAnswer], Meta(description="The first 1,000 of them.")]  # type: ignore[valid-type]


class Diff(Struct):
    a: str
    b: str
    added: FilesPart
    changed: Annotated[FilesPart, Meta(description="As b has them.")]
    gone: FilesPart
    same: int


def list_generations(
    ports: DropPorts, route: RouteName, name: DropName
) -> Annotated[list[Json], list[GenerationAnswer]]:
    generations = versions.generations(ports.drops, ports.routes, DropKey(route, name))
    return [plain_fields(each, ("folder",)) for each in generations]


def list_files(ports: DropPorts, query: FilesQuery) -> Annotated[Json, FilesAnswer]:
    """Return a page of the files of a generation, of a drop in its current state, or of a run."""
    data_files = versions.files(ports, query.of)
    page = sorted(data_files, key=lambda file: file.path)[query.offset :][:MOST_NAMED]
    return {
        "of": query.of,
        "count": len(data_files),
        "bytes": versions.total(data_files),
        "files": [_file(f) for f in page],
    }


def diff_data(ports: DropPorts, query: DiffQuery) -> Annotated[Json, Diff]:
    file_difference = versions.diff(ports, query.a, query.b)
    parts = {name: _part(getattr(file_difference, name)) for name in ("added", "changed", "gone")}
    return {"a": query.a, "b": query.b, **parts, "same": file_difference.same}


def _part(data_files: tuple[DataFile, ...]) -> Json:
    return {
        "count": len(data_files),
        "bytes": versions.total(data_files),
        "files": [_file(f) for f in data_files[:MOST_NAMED]],
    }


def _file(file: DataFile) -> Json:
    return {f.name: getattr(file, f.name) for f in fields(file)}

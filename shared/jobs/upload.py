"""Folders uploaded for a job: code, inputs, build contexts. Content-addressed, so equal content is uploaded once.

A folder is stored in the workspace's own container, where nodes can read it, under a hash of its files' names, sizes
and MD5s. No I/O here.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from shared.jobs.location import OUTPUT_STORE, Asset, Location, Where
from shared.jobs.problem import Problem
from shared.jobs.readers.pipeline import steps
from shared.jobs.readers.place_text import ASSET_FORM
from shared.jobs.spec import Environment, JobSpec
from shared.kernel.errors import Impossible
from shared.kernel.names import path_problem

ROOT = "trainyard/uploads/"  # in the store of outputs
MOST_FILES = 2000
MIB = 1 << 20
NAMED = 5  # files in a sentence
# Of a Docker build context: https://learn.microsoft.com/azure/machine-learning/resource-limits-capacity
CONTEXT_FILES, CONTEXT_BYTES = 100, 1_000_000
CONTEXT = "environment.context"  # the place of a build context in a job

_PLACE = re.compile(re.escape(ROOT) + r"([0-9a-f]{64})(?:/(.*))?")
_CODE_ID = re.compile(r"[\w.-]+:[\w.-]+|/subscriptions/[\w./()-]+/codes/[\w.-]+/versions/[\w.-]+")
_MD5 = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, order=True)
class File:
    """A file of the folder. `md5` is lower-case hex."""

    name: str
    size: int
    md5: str


def digest(files: Iterable[File]) -> str:
    """The digest of a folder with these files. The digest is also the folder's name."""
    content = hashlib.sha256()
    for file in sorted(files):
        content.update(f"{file.name}\0{file.size}\0{file.md5}\n".encode())
    return content.hexdigest()


def path(name: str) -> Location:
    """The place of the uploaded folder with this digest."""
    return Location(OUTPUT_STORE, f"{ROOT}{name}/")


def digest_in(place: Where) -> str | None:
    """The digest of the uploaded folder at or above this path; None for any other path."""
    if not isinstance(place, Location) or place.store != OUTPUT_STORE or place.workspace:
        return None
    match = _PLACE.fullmatch(place.path)
    return match[1] if match else None


def is_folder(place: Where) -> bool:
    """Whether this is the path of an uploaded folder itself, not of a file in it."""
    name = digest_in(place)
    return name is not None and place == path(name)


def unfit_code(code: Where, allowed: bool) -> Iterator[Problem]:
    """Problems of code that is neither registered nor an uploaded folder. `allowed`: uploaded code is allowed."""
    is_registered = isinstance(code, Asset) and _CODE_ID.fullmatch(code.id)
    if code and not (is_registered or is_folder(code)):
        yield Problem(
            "code",
            f"must be a registered asset, {ASSET_FORM}, or a folder that was sent: `trainyard submit "
            "job.yml` sends the folder that it names. Leave it out for the trainers.",
        )
    elif digest_in(code) and not allowed:
        yield Problem("code", "of your own is not allowed here; an administrator can allow it in the routes file.")


def used(job: JobSpec) -> Iterator[tuple[str, str]]:
    """(place in the job, digest) of each uploaded folder that the job or a step uses."""
    places: dict[str, Where] = {"code": job.code} | {
        f"inputs.{name}.path": value.path for name, value in job.data.items()
    }
    if isinstance(job.environment, Environment):
        places[CONTEXT] = job.environment.context
    for key, place in places.items():
        if name := digest_in(place):
            yield key, name
    for step in steps(job):
        yield from ((f"jobs.{step.name}.{key}", name) for key, name in used(step.job))


def check(files: Iterable[File], most_bytes: int) -> None:
    """Raise Impossible for an invalid folder: no files, too many files, too large, or invalid names."""
    listed = list(files)
    if not listed:
        raise Impossible("There are no files to upload.", "empty_upload")
    if len(listed) > MOST_FILES:
        raise Impossible(
            f"The folder has more than {MOST_FILES:,} files. Leave data, environments and results out with .amlignore, "
            "or upload data as a drop.",
            "upload_too_large",
        )
    if (total := sum(file.size for file in listed)) > most_bytes:
        raise Impossible(_too_large(listed, total, most_bytes), "upload_too_large")
    names = [file.name for file in listed]
    for file in listed:
        if fault := path_problem(file.name):
            raise Impossible(fault, "bad_name")
        if file.size < 0 or not _MD5.fullmatch(file.md5):
            raise Impossible(f"{file.name[:80]!r} needs a size and an MD5 of 32 hex digits.", "bad_upload")
    if len(set(names)) < len(names):
        raise Impossible("A file's name is there twice.", "bad_upload")


def check_context(files: Iterable[File]) -> None:
    """Raise Impossible for a Docker build context from which Azure ML would not build an image."""
    sizes = [file.size for file in files]
    if len(sizes) > CONTEXT_FILES or sum(sizes) > CONTEXT_BYTES:
        raise Impossible(
            f"The build context has {len(sizes):,} files with {sum(sizes) / 1e6:.2f} MB; Azure ML takes at most "
            f"{CONTEXT_FILES} files and {CONTEXT_BYTES / 1e6:g} MB. Move the Dockerfile and what it installs from to "
            "a folder of their own, or leave other files out with .amlignore.",
            "upload_too_large",
        )


def _too_large(files: list[File], total: int, most: int) -> str:
    largest = [file for file in sorted(files, key=lambda file: -file.size)[:NAMED] if file.size > total / 100]
    listed = ", ".join(f"{file.name} ({file.size / MIB:.1f} MiB)" for file in largest)
    return (
        f"The folder has {total / MIB:.1f} MiB, the limit is {most / MIB:g} MiB. The largest files: {listed}. Leave "
        "out what the job does not need with .amlignore. Drop data instead, such as `drop FOLDER data/NAME`: that has "
        "no limit, and `--data drops/data/NAME` names it."
    )


def missing(files: Iterable[File], there: Mapping[str, tuple[int, str]]) -> Iterator[tuple[File, bool]]:
    """The missing or different files, each with whether other content is stored in the file's place."""
    for file in files:
        size_and_md5 = there.get(file.name)
        if size_and_md5 != (file.size, file.md5):
            yield file, size_and_md5 is not None

"""Assets that a checkout declares in files of its own, registered before the jobs that name them.

A published job may name assets that its repository registers first: `az ml component create --file train.yml`,
`az ml data create`, `az ml environment create`. `Assets.register` does the same with the unmodified MLClient for the
assets that one job names. Of several files that declare the same name, the file nearest to the job counts.
"""

from __future__ import annotations

import json
import logging
import os
import re
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

import yaml

from local.cloud import Cloud

WORDS = 200
# The kind of an asset, by the last part of its file's $schema. /asset.schema.json is that of data in 2022.
KINDS = (
    ("component", re.compile(r"component(\.schema)?\.json", re.IGNORECASE)),
    ("data", re.compile(r"/(asset|data|dataset|mltable)(\.schema)?\.json", re.IGNORECASE)),
    ("environment", re.compile(r"/environment(\.schema)?\.json", re.IGNORECASE)),
    ("model", re.compile(r"/model(\.schema)?\.json", re.IGNORECASE)),
)
_NAMED = re.compile(r"azureml:([\w.-]+)(?:[:@][\w.-]+)?")
_NO_ASSETS = ("compute", "default_compute", "default_datastore", "name")


@dataclass(frozen=True)
class Declared:
    """A file that declares an asset: `az ml KIND create --file FILE` would register it."""

    kind: str
    name: str
    file: Path


def declared(folder: Path) -> Iterator[Declared]:
    """Yield the files below the folder that declare an asset with a name, in order of their paths."""
    for file in sorted(each for pattern in ("*.yml", "*.yaml") for each in folder.rglob(pattern)):
        said = _read(file)
        schema = str(said.get("$schema"))
        kind = next((kind for kind, words in KINDS if words.search(schema)), None)
        if kind and isinstance(name := said.get("name"), str):
            yield Declared(kind, name, file)


def named(file: Path) -> tuple[set[str], set[Path]]:
    """Return the names of the assets in a job's or component's file and in the local files that it names as
    components, and all these files."""
    found: set[str] = set()
    files = {file}
    _walk(_read(file), file.parent, found, files)
    return found, {each for each in files if each.is_file()}


def _walk(value: Any, base: Path, found: set[str], seen: set[Path]) -> None:
    if isinstance(value, Mapping):
        for key, each in value.items():
            if key not in _NO_ASSETS:
                _walk(each, base, found, seen)
            if key in ("component", "trial") and isinstance(each, str) and not each.startswith("azureml:"):
                file = (base / each.removeprefix("file:")).resolve()
                if file not in seen:
                    seen.add(file)
                    _walk(_read(file), file.parent, found, seen)
    elif isinstance(value, list):
        for each in value:
            _walk(each, base, found, seen)
    elif isinstance(value, str) and (name := _NAMED.fullmatch(value)):
        found.add(name[1])


def _read(file: Path) -> Mapping[str, Any]:
    """Return the content of a YAML file; an empty mapping if there is no mapping to read."""
    try:
        said = yaml.safe_load(file.read_text("utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        return {}
    return said if isinstance(said, Mapping) else {}


@dataclass
class Assets:
    """The assets of a checkout. Each file is registered at most once."""

    client: Any  # an MLClient
    files: list[Declared]
    done: dict[Path, str] = field(default_factory=dict)  # the words of a failure, or nothing, by file
    lock: threading.Lock = field(default_factory=threading.Lock)

    def register(self, job: Path) -> list[str]:
        """Register the assets that the job names, and first those that a component of them names. Return a line for
        each."""
        with self.lock:
            return list(dict.fromkeys(self._register(job, set())))

    def _register(self, file: Path, above: set[Path]) -> Iterator[str]:
        names, _ = named(file)
        for kind in ("environment", "data", "model", "component"):
            for name in sorted(names):
                if found := self._nearest(kind, name, file):
                    if found.file not in above:
                        yield from self._register(found.file, {*above, file})
                    yield self._once(found)

    def _nearest(self, kind: str, name: str, job: Path) -> Declared | None:
        fitting = [each for each in self.files if (each.kind, each.name) == (kind, name) and each.file != job]
        return min(fitting, key=lambda each: (_steps(job.parent, each.file.parent), each.file), default=None)

    def _once(self, asset: Declared) -> str:
        if asset.file not in self.done:
            try:
                with redirect_stderr(StringIO()):  # the SDK writes escapes of a terminal after each upload
                    _create(self.client, asset)
                self.done[asset.file] = ""
            except Exception as error:  # noqa: BLE001 - the SDK raises many kinds; the job's own refusal follows
                self.done[asset.file] = f": {' '.join(str(error).split())[:WORDS]}"
        return f"{asset.kind} {asset.name} of {asset.file.name}{self.done[asset.file]}"


def _steps(start: Path, end: Path) -> int:
    """Return the number of folders between two folders."""
    common = Path(os.path.commonpath([start, end]))
    return len(start.relative_to(common).parts) + len(end.relative_to(common).parts)


def _create(client: Any, asset: Declared) -> None:
    from azure.ai.ml import load_component, load_data, load_environment, load_model

    load = {"component": load_component, "data": load_data, "environment": load_environment, "model": load_model}
    groups = {"component": "components", "environment": "environments", "model": "models", "data": "data"}
    getattr(client, groups[asset.kind]).create_or_update(load[asset.kind](asset.file))


@contextmanager
def assets_of(folder: Path, cloud: Cloud) -> Iterator[Assets]:
    """Yield the assets of a checkout, to be registered in the workspace of the local cloud."""
    before = dict(os.environ)
    os.environ.update(cloud.azureml_env)
    logging.getLogger("azure.ai.ml").setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from azure.ai.ml import MLClient
            from azure.identity import DefaultAzureCredential

            scope = [os.environ[f"AML_{key}"] for key in ("SUBSCRIPTION_ID", "RESOURCE_GROUP", "WORKSPACE")]
            with DefaultAzureCredential() as credential:
                address = json.loads(os.environ["AML_CLIENT_KWARGS"])
                client = MLClient(credential, *scope, show_progress=False, **address)
                yield Assets(client, list(declared(folder)))
    finally:
        os.environ.clear()
        os.environ.update(before)

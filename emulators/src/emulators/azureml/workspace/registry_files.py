"""The content of a registry, as files in Azure ML's own YAML:
`REGISTRY/{environments,components,models,data}/*.yml`.

    registries/
      team/
        environments/tabular.yml      name, version, image and conda_file, or a build context
        models/net.yml                name, version, type, path: ./net/
        data/iris.yml                 name, version, type, path: ./iris.csv
        components/train.yml          a command component: code: ./src, environment, inputs, outputs, command

A path may lead to a file or folder beside the YAML, or to any other place that an input may name. Files
beside the YAML are uploaded to the storage account under a name derived from their content.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from emulators.azureml.kernel.errors import ArmError, BadRequest
from emulators.azureml.kernel.models import Json
from emulators.azureml.running.folders import is_text
from emulators.azureml.workspace.registries import Written

KINDS = ("environments", "components", "models", "data")
CONTAINER = "registries"
# An invalid date and endless nesting do not raise YAMLError.
UNREADABLE = (ArmError, OSError, ValueError, TypeError, RecursionError, yaml.YAMLError)
_FACTS = ("description", "tags", "properties")


@dataclass
class Reading:
    """The content of one registry's folder. `sent` are the files to upload, by their path in the container."""

    name: str
    address: Callable[[str], str]  # of a place in the container
    written: list[Written] = field(default_factory=list)
    problems: dict[str, str] = field(default_factory=dict)
    sent: dict[str, Path] = field(default_factory=dict)

    def read(self, folder: Path) -> None:
        for kind in KINDS:
            for file in sorted([*(folder / kind).glob("*.yml"), *(folder / kind).glob("*.yaml")]):
                try:
                    self.written += self._assets(kind, file)
                except UNREADABLE as error:
                    words = error.message if isinstance(error, ArmError) else str(error).partition("\n")[0]
                    self.problems[f"{kind}/{file.name}"] = words

    def _assets(self, kind: str, file: Path) -> Iterator[Written]:
        said = yaml.safe_load(file.read_text(encoding="utf-8"))
        if isinstance(said, dict) and "dependencies" in said:
            return  # a conda file, which an environment beside it names
        if not isinstance(said, dict) or not said.get("name"):
            raise BadRequest("It must be a mapping with a name and a version.")
        name, version = str(said["name"]), str(said.get("version") or "1")
        facts: Json = {key: said[key] for key in _FACTS if said.get(key)}
        if kind == "environments":
            yield Written(kind, name, version, {**facts, **self._environment(said, file)})
        elif kind == "components":
            yield from self._component(said, file, facts)
        else:
            yield Written(kind, name, version, {**facts, **self._with_files(kind, said, file)})

    def _environment(self, said: Json, file: Path) -> Json:
        conda, build = said.get("conda_file"), said.get("build")
        body: Json = {"osType": "Linux"}
        if said.get("image"):
            body["image"] = str(said["image"])
        if isinstance(conda, str):
            body["condaFile"] = _beside(file, conda).read_text(encoding="utf-8")
        elif conda:
            body["condaFile"] = yaml.safe_dump(conda, sort_keys=True)
        if isinstance(build, dict):
            dockerfile = str(build.get("dockerfile_path") or "Dockerfile")
            body["build"] = {"contextUri": self._uri(file, build.get("path")), "dockerfilePath": dockerfile}
        return body

    def _with_files(self, kind: str, said: Json, file: Path) -> Json:
        uri = self._uri(file, said.get("path"))
        if kind == "models":
            return {"modelUri": uri, "modelType": str(said.get("type") or "custom_model")}
        return {"dataUri": uri, "dataType": str(said.get("type") or "uri_folder")}

    def _component(self, said: Json, file: Path, facts: Json) -> Iterator[Written]:
        """Yield the component and, as separate versions, its inline code and environment."""
        name, version = str(said["name"]), str(said.get("version") or "1")
        spec = {"type": "command", **said}
        if isinstance(code := said.get("code"), str) and not code.startswith("azureml:"):
            uri = self._uri(file, code)
            digest = uri.rstrip("/").rpartition("/")[2]
            yield Written("codes", digest, "1", {"codeUri": uri, "isAnonymous": True})
            spec["code"] = f"azureml://registries/{self.name}/codes/{digest}/versions/1"
        if isinstance(said.get("environment"), dict):
            own = f"{name}-environment"
            body = {**self._environment(said["environment"], file), "isAnonymous": True}
            yield Written("environments", own, version, body)
            spec["environment"] = f"azureml://registries/{self.name}/environments/{own}/versions/{version}"
        yield Written("components", name, version, {**facts, "componentSpec": spec})

    def _uri(self, file: Path, path: Any) -> str:
        """Return the URI for a path in a YAML file. A local path is scheduled for upload."""
        if not isinstance(path, str) or not path:
            raise BadRequest("It needs a path.")
        if "://" in path or path.startswith("azureml:"):
            return path
        source = _beside(file, path)
        if source.is_file():
            place = f"{self.name}/{_digest([source], source.parent)}/{source.name}"
            self.sent[place] = source
            return self.address(place)
        found = sorted(below for below in source.rglob("*") if below.is_file())
        if not found:
            raise BadRequest(f"There is no file at {path}.")
        place = f"{self.name}/{_digest(found, source)}"
        self.sent |= {f"{place}/{below.relative_to(source).as_posix()}": below for below in found}
        return self.address(f"{place}/")


def stamps(folder: Path) -> dict[str, tuple[int, int]]:
    """Return the times and sizes of all files, from which changes are detected."""
    found = {}
    for path in folder.rglob("*"):
        try:
            if path.is_file():
                found[str(path)] = (path.stat().st_mtime_ns, path.stat().st_size)
        except FileNotFoundError:  # removed after the listing
            continue
    return found


def _beside(file: Path, path: str) -> Path:
    """Return the path in a file, relative to the file. Raises BadRequest for an absolute path or `..`, which could
    leave a shared folder. The folder's owner can use links instead."""
    if Path(path).is_absolute() or ".." in Path(path).parts:
        raise BadRequest(f"The path {path!r} must lie below the folder of the file.")
    return file.parent / path


def _digest(files: list[Path], root: Path) -> str:
    """Return a hash of these files' relative paths and bytes."""
    told = hashlib.sha256()
    for file in files:
        path = file.relative_to(root).as_posix()
        if not is_text(path):
            raise BadRequest(f"The name of a blob must be UTF-8, and that of the file {os.fsencode(path)!r} is not.")
        told.update(f"{path}\0{file.stat().st_size}\0".encode())
        with file.open("rb") as data:
            told.update(hashlib.file_digest(data, "sha256").digest())
    return told.hexdigest()[:32]

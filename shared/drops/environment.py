"""An environment whose files lie in a drop: a conda file, an environment file, or a build context.

Azure ML's own clients read these from the disk of whoever submits; a job file in a drop names them the same way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from shared.jobs import upload
from shared.jobs.job import is_relative, mapping
from shared.jobs.job_file import JOB_FILE_LIMIT, BrokenJobFile, JobFile
from shared.jobs.ports import HasJobs, HasLimits
from shared.jobs.routes_file import Route
from shared.jobs.uploads import collect
from shared.kernel.drop_key import DropKey
from shared.kernel.errors import BadInput, Impossible, NotFound
from shared.kernel.has import HasBlobs
from shared.kernel.names import path_problem
from shared.kernel.parsing import read_yaml
from shared.kernel.places import DROPS_CONTAINER
from shared.kernel.storage import Place

_FILE = ("file:", "./")  # how the name of an environment file begins; any other text is a registered environment's


class Ports(HasBlobs, HasJobs, HasLimits, Protocol):
    """What is needed here from outside."""


def with_environment(ports: Ports, key: DropKey, route: Route, job_file: JobFile | None) -> JobFile | None:
    """The job file with its environment's files read in, and a build context where its content belongs.

    Raises BrokenJobFile for a file that is not there or can't be read. Twice copies nothing again.
    """
    if job_file is None or not _names_files(route, job_file):
        return job_file
    return _replaced(job_file, _Beside(ports, key, route, job_file).environment(job_file.content["environment"]))


def with_any_environment(route: Route, job_file: JobFile | None) -> JobFile | None:
    """The same before there is a drop: whatever the files will say, it has a place."""
    if job_file is None or not _names_files(route, job_file):
        return job_file
    described = mapping(job_file.content["environment"])
    known = {key: value for key, value in described.items() if key not in ("conda_file", "build")}
    if "build" in described:
        known["build"] = {**mapping(described["build"]), "path": upload.path(upload.digest(()))}
    elif known:
        known["conda_file"] = {"dependencies": []}
    return _replaced(job_file, known or {"image": "of-the-drop"})


def _names_files(route: Route, job_file: JobFile) -> bool:
    described = job_file.content.get("environment")
    if not route.job_file.allowed:
        return False
    if isinstance(described, str):
        return described.startswith(_FILE)
    build = mapping(mapping(described).get("build"))
    return is_relative(mapping(described).get("conda_file")) or is_relative(build.get("path"))


def _replaced(job_file: JobFile, environment: Mapping[str, Any]) -> JobFile:
    return replace(job_file, content={**job_file.content, "environment": environment})


@dataclass(frozen=True)
class _Beside:
    """Reads what lies beside a job file."""

    ports: Ports
    key: DropKey
    route: Route
    job_file: JobFile

    def environment(self, described: Any) -> dict[str, Any]:
        folder = ""
        if isinstance(described, str):
            path = self._path("", described.removeprefix("file:"), "environment")
            described, folder = self._yaml(path, "environment"), path.rpartition("/")[0]
        made = {key: value for key, value in dict(described).items() if key != "$schema"}
        if is_relative(conda := made.get("conda_file")):
            path = self._path(folder, str(conda), "environment.conda_file")
            made["conda_file"] = self._yaml(path, "environment.conda_file")
        build = mapping(made.get("build"))
        if is_relative(build.get("path")):
            made["build"] = {**build, "path": self._context(self._path(folder, build["path"], "environment.build"))}
        return made

    def _path(self, folder: str, path: str, what: str) -> str:
        """A path as blobs are named; of a build context '' may be the drop itself."""
        parts = [part for part in f"{folder}/{path}".split("/") if part not in ("", ".")]
        if parts and (fault := path_problem("/".join(parts))):
            raise self._broken(what, fault)
        return "/".join(parts)

    def _yaml(self, path: str, what: str) -> dict[str, Any]:
        try:
            data = self.ports.blobs.read(DROPS_CONTAINER, self.key.prefix() + path, JOB_FILE_LIMIT)
            content, _ = read_yaml(data, path)
        except NotFound:
            raise self._broken(what, f"the drop has no file {path!r}.") from None
        except BadInput as exc:
            raise self._broken(what, str(exc)) from exc
        if not isinstance(content, dict):
            raise self._broken(what, f"{path} holds no mapping.")
        return content

    def _context(self, folder: str) -> str:
        """The build context, which is code: it decides what runs while the image is built."""
        if not self.route.limits.allows_code:
            raise self._broken(
                "environment.build",
                "a drop can't bring its own build context on this route; an administrator can allow it with `allow: "
                "[code]` in the routes file.",
            )
        try:
            place = Place(DROPS_CONTAINER, self.key.prefix())
            return collect(self.ports, place, folder, self.ports.limits.max_upload_mib)
        except Impossible as exc:
            raise self._broken("environment.build", str(exc)) from exc

    def _broken(self, what: str, why: str) -> BrokenJobFile:
        return BrokenJobFile(f"{self.job_file.where(what)}: {what}: {why}")

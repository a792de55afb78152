"""Code and environments whose files are in a drop: a code folder, a conda or environment file, a build context.

Azure ML's own clients read such files from the submitter's disk; a job file in a drop names them in the same way.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from posixpath import normpath
from typing import Any

from shared.jobs import upload
from shared.jobs.limits import Limits
from shared.jobs.location import DROPS_STORE, Location, is_relative
from shared.jobs.ports import Stores
from shared.jobs.readers.azureml import path_of, read_environment
from shared.jobs.readers.component import from_folder, is_file
from shared.jobs.readers.job_file import JOB_FILE_LIMIT, BrokenJobFile, JobFile
from shared.jobs.readers.pipeline_document import DEEPEST, JOBS, mapping
from shared.jobs.spec import Environment, JobSpec
from shared.jobs.uploads import collect
from shared.kernel.errors import BadInput, Impossible, NotFound
from shared.kernel.names import path_problem
from shared.kernel.parsing import read_yaml
from shared.kernel.storage import Place

_FILE = ("file:", "./")  # prefixes of an environment file's name; any other text is a registered environment
_COMPONENT, _TRIAL = "component", "trial"
_OF_THE_DROP = {"command": "of-the-drop", "environment": "azureml:of-the-drop:1"}
_CODE, _ENVIRONMENT, _CONDA, _CONTEXT = "code", "environment", "environment.conda", "environment.build"


@dataclass(frozen=True)
class DropFiles:
    """The files beside a job file.

    `folder` is None before the drop exists; the files then have places, but no content.
    """

    stores: Stores
    limits: Limits
    job_file: JobFile
    folder: Place | None
    within: str = ""  # the step of a pipeline, as the prefix of its keys; '' for the job itself

    def read_in(self, document: Mapping[str, Any]) -> Mapping[str, Any]:
        """The document with its component files read in: a sweep's trial, and a pipeline's steps.

        Paths in these files are rewritten to be relative to the drop's folder. Raises BrokenJobFile.
        """
        if isinstance(trial := document.get(_TRIAL), str) and is_file(trial):
            return {**document, _TRIAL: self._component(_TRIAL, trial, _OF_THE_DROP)}
        if isinstance(jobs := document.get(JOBS), Mapping):
            return {**document, JOBS: self._steps(jobs, 0)}
        return document

    def _steps(self, jobs: Mapping[str, Any], depth: int) -> dict[str, Any]:
        if depth > DEEPEST:
            raise self._broken(JOBS, f"has more than {DEEPEST} levels of pipelines within pipelines.")
        return {name: self._step(name, body, depth) for name, body in jobs.items()}

    def _step(self, name: str, body: Any, depth: int) -> Any:
        if not isinstance(body, Mapping):
            return body
        for key in (_COMPONENT, _TRIAL):
            if isinstance(named := body.get(key), str) and is_file(named):
                body = {**body, key: self._component(f"{JOBS}.{name}.{key}", named, self._in_place_of(name, body))}
        within = mapping(body.get(_COMPONENT))
        if isinstance(below := within.get(JOBS), Mapping):
            return {**body, _COMPONENT: {**within, JOBS: self._steps(below, depth + 1)}}
        return body

    def _component(self, what: str, name: str, before: Any) -> Any:
        """The content of a component's file, with paths relative to the drop. Before the drop exists: `before`."""
        path = self._path("", normpath(name.removeprefix("file:")), what)
        if self.folder is None:
            return before
        return from_folder(self._yaml(path, what), path.rpartition("/")[0])

    def _in_place_of(self, name: str, body: Mapping[str, Any]) -> Any:
        """A placeholder component with the pipeline's inputs and outputs for this step."""
        taken = re.findall(rf"parent\.jobs\.{re.escape(name)}\.outputs\.([\w-]+)", str(self.job_file.document))
        outputs = {key: {"type": "uri_folder"} for key in (*mapping(body.get("outputs")), *taken)}
        inputs = {key: {"type": "uri_folder"} for key in mapping(body.get("inputs"))}
        return {**_OF_THE_DROP, "type": "command", "inputs": inputs, "outputs": outputs}

    def put_in(self, job: JobSpec) -> JobSpec:
        """The job with the code at the content-addressed place, and the environment's files read in.

        A repeat copies nothing. Raises BrokenJobFile for a missing, unreadable or forbidden file.
        """
        if isinstance(job.code, str) and is_relative(job.code):
            job = replace(job, code=self._code(job.code))
        environment = job.environment
        if isinstance(environment, str) and environment.startswith(_FILE):
            return replace(job, environment=self._environment_file(environment.removeprefix("file:")))
        if isinstance(environment, Environment):
            return replace(job, environment=self._with_files(environment, ""))
        return job

    def put_in_step(self, step: JobSpec) -> JobSpec:
        """Like put_in, for a step of a pipeline, including the drop's data that the step names."""
        root, inside = self.folder.prefix if self.folder else "", {}
        for name, value in step.data.items():
            if isinstance(value.path, str) and is_relative(value.path):
                below = self._path("", normpath(value.path), f"{JOBS}.{step.name}.inputs.{name}.path")
                inside[name] = replace(value, path=Location(DROPS_STORE, root + below))
        files = replace(self, within=f"{JOBS}.{step.name}.")
        return files.put_in(replace(step, inputs={**step.inputs, **inside}))

    def _code(self, folder: str) -> Location:
        if not self.limits.allows_code:
            words = "a drop can't have its own on this route; an administrator can allow it in the routes file."
            raise self._broken(_CODE, words)
        try:
            return self._collected(folder)
        except Impossible as exc:
            raise BrokenJobFile(f"The drop's code can't be used. {exc}") from exc

    def _environment_file(self, name: str) -> Environment:
        path = self._path("", name, _ENVIRONMENT)
        if self.folder is None:
            return Environment("of-the-drop")
        described = read_environment(self._yaml(path, _ENVIRONMENT))
        assert isinstance(described, Environment)
        return self._with_files(described, path.rpartition("/")[0])

    def _with_files(self, described: Environment, folder: str) -> Environment:
        """The environment with the files read in. `folder` is the folder of the describing file."""
        if isinstance(described.conda, str) and is_relative(described.conda):
            path = self._path(folder, described.conda, _CONDA)
            described = replace(described, conda=self._yaml(path, _CONDA) if self.folder else {"dependencies": []})
        if isinstance(described.context, str) and is_relative(described.context):
            described = replace(described, context=self._context(self._path(folder, described.context, _CONTEXT)))
        return described

    def _path(self, folder: str, path: str, what: str) -> str:
        """The path in the form of blob names. For a build context, '' is the drop itself."""
        parts = [part for part in f"{folder}/{path}".split("/") if part not in ("", ".")]
        if parts and (fault := path_problem("/".join(parts))):
            raise self._broken(what, fault)
        return "/".join(parts)

    def _yaml(self, path: str, what: str) -> Mapping[str, Any]:
        assert self.folder is not None
        try:
            data = self.stores.blobs.read(self.folder.container, self.folder.prefix + path, JOB_FILE_LIMIT)
            content, _ = read_yaml(data, path)
        except NotFound:
            raise self._broken(what, f"the drop has no file {path!r}.") from None
        except BadInput as exc:
            raise self._broken(what, str(exc)) from exc
        if not isinstance(content, dict):
            raise self._broken(what, f"{path} does not contain a mapping.")
        return content

    def _context(self, folder: str) -> Location:
        """The place of the build context. The context counts as code, because it decides what the image build runs."""
        if not self.limits.allows_code:
            raise self._broken(
                _CONTEXT,
                "a drop can't have its own build context on this route; an administrator can allow it with `allow: "
                "[code]` in the routes file.",
            )
        try:
            return self._collected(folder, is_context=True)
        except Impossible as exc:
            raise self._broken(_CONTEXT, str(exc)) from exc

    def _collected(self, folder: str, *, is_context: bool = False) -> Location:
        if self.folder is None:
            return upload.path(upload.digest(()))
        return collect(self.stores, self.folder, folder, self.limits.max_upload_mib, is_context=is_context)

    def _broken(self, what: str, why: str) -> BrokenJobFile:
        path = f"{self.within}{path_of(what)}"
        return BrokenJobFile(f"{self.job_file.where(path)}: {path}: {why}")

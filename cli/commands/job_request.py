"""The part of `submit` about the work: a trainer, a template, a job file, or a folder of code."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from ..files import folder_environment, folder_imports, folder_job, job_file
from ..files.component_upload import with_job_sent
from ..files.job_upload import with_everything_sent
from ..session import Session, user_path

JOB_SUFFIXES = (".yml", ".yaml", ".json")
DATES = {"done_by": "--done-by", "within_seconds": "--within", "takes_seconds": "--takes"}
# Fields that only a request can have, not a job file, each with its option.
NOT_IN_A_FILE = {"from_run": "--from", "resubmissions": "--resubmissions", "keep_warm_seconds": "--keep-warm", **DATES}


@dataclass(frozen=True)
class Work:
    """The arguments and options of the command line about the work."""

    distribution: dict[str, Any]  # the distribution of a folder's command; empty without one
    what: str
    template: str
    job: Path | None
    command: str
    env: str
    save: Path | None

    def read(self, session: Session, parameters: dict[str, Any], has_data: bool) -> dict[str, Any]:
        """Upload the job's needs from this machine, and return the request's part about the work.

        Raises BadParameter unless the arguments name exactly one thing to run.
        """
        file = self.job or (Path(self.what) if self.what.endswith(JOB_SUFFIXES) else None)
        chosen = {"--template": self.template, "--job": self.job, "WHAT": self.what}
        if len(options := [name for name, value in chosen.items() if value]) != 1:
            raise typer.BadParameter(
                "Give exactly one of: a trainer, a job file, a folder, --template. You gave: "
                f"{', '.join(options) or 'none'}."
            )
        if self.command:
            source, job, found = self._folder(parameters, has_data)
            if not self.env:
                session.remark(*folder_environment.environment_line(found, source))
            if line := self._import_line(source, job["environment"], found):
                session.remark(line, "yellow")
            return {"job": with_everything_sent(session.api, job, source, session.remark)}
        if self.env or self.save or self.distribution:
            raise typer.BadParameter("--env, --distribution, --processes and --save are for a folder with --command.")
        if file:
            return {"job": _job_file(session, user_path(file))}
        if self.what and (self.what in (".", "..") or "/" in self.what):
            raise typer.BadParameter(f'Say what to run in {self.what}: --command "python train.py --data {{data}}".')
        return {"template": self.template} if self.template else {"trainer": self.what}

    def _import_line(self, source: Path, environment: Any, found: str) -> str:
        """Return what the command's script imports and the environment lacks. Conda files and registered environments
        are not compared."""
        if self.env.lower().startswith("azureml") or f"{self.env}{found}".endswith((".yml", ".yaml")):
            return ""
        asked = folder_environment.requirements(environment)
        return folder_imports.import_line(
            self.command, source, asked, found or (f"--env {self.env}" if self.env else "")
        )

    def write_job_file(self, session: Session, parameters: dict[str, Any], body: dict[str, Any]) -> None:
        """With --save, write the job file with which `submit FILE` makes the same run as this request."""
        if self.save is None:
            return
        source, job, _ = self._folder(parameters, "data" in body)
        folder_job.save(job, body, source, user_path(self.save))
        session.remark(f"Written to {self.save}", "dim")
        if options := [option for key, option in NOT_IN_A_FILE.items() if key in body]:
            session.remark(f"A job file can't contain {' and '.join(options)}. Give the option again.", "yellow")
        if isinstance(body.get("nodes"), dict):
            session.remark("A job file can't contain a range of --nodes. Give the option again.", "yellow")

    def _folder(self, parameters: dict[str, Any], has_data: bool) -> tuple[Path, dict[str, Any], str]:
        """The folder, its job, and the name of the file in the folder that describes the environment."""
        source = user_path(Path(self.what))
        if not source.is_dir():
            raise typer.BadParameter(f"--command runs in a folder, and there is no folder at {self.what!r}.")
        environment, found = folder_environment.environment(self.env, source, user_path(Path()))
        job = folder_job.job_of(self.command, parameters, has_data, environment, self.distribution)
        return source, folder_job.with_own_packages(job, source), found


def _job_file(session: Session, file: Path) -> dict[str, Any]:
    return with_job_sent(session.api, job_file.load(file), file.parent, session.remark)

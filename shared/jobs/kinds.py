"""What differs between the kinds of jobs: whoever needs it asks `kind_of(job)`, and not which kind it is. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Protocol

from shared.jobs.limits import Limits
from shared.jobs.model import Problem
from shared.jobs.pipeline_checks import pipeline_faults
from shared.jobs.readers.pipeline import Step, steps
from shared.jobs.readers.pipeline_document import JOBS, on_one_cluster
from shared.jobs.spec import COMMAND, PIPELINE, JobSpec


class Kind(Protocol):
    """One kind of job. `runs_a_command`: itself, on its own nodes and with its own inputs; else the jobs within it do,
    which nothing of a template lies under and which are not read whole here."""

    @property
    def runs_a_command(self) -> bool: ...

    def on_its_cluster(self, job: JobSpec) -> JobSpec:
        """The job with all that it runs on the cluster that it names itself."""

    def parts(self, job: JobSpec) -> tuple[Step, ...]:
        """The jobs within it, in the order of the file."""

    def part_faults(self, job: JobSpec, limits: Limits) -> Iterator[Problem]:
        """All that is wrong with those, each of which obeys the limits that it would as a job of its own."""


class _Command:
    """A job that has no other within it."""

    runs_a_command = True

    def on_its_cluster(self, job: JobSpec) -> JobSpec:
        return job

    def parts(self, job: JobSpec) -> tuple[Step, ...]:  # noqa: ARG002 the kind's
        return ()

    def part_faults(self, job: JobSpec, limits: Limits) -> Iterator[Problem]:  # noqa: ARG002 the kind's
        return iter(())


class _Pipeline:
    runs_a_command = False

    def on_its_cluster(self, job: JobSpec) -> JobSpec:
        return replace(job, rest={**job.rest, JOBS: on_one_cluster(job.rest.get(JOBS))})

    def parts(self, job: JobSpec) -> tuple[Step, ...]:
        return steps(job)

    def part_faults(self, job: JobSpec, limits: Limits) -> Iterator[Problem]:
        return pipeline_faults(job, limits)


KINDS: dict[str, Kind] = {COMMAND: _Command(), PIPELINE: _Pipeline()}


def kind_of(job: JobSpec) -> Kind:
    """Its kind; one that is not run here, and so is refused, is like a command until then."""
    return KINDS.get(job.kind, KINDS[COMMAND])

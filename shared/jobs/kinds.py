"""The differences between the kinds of jobs. Callers use `kind_of(job)` instead of testing the kind. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Protocol

from shared.jobs.limits import Limits
from shared.jobs.pipeline_checks import pipeline_faults
from shared.jobs.problem import Problem
from shared.jobs.readers.pipeline import WrittenStep, steps
from shared.jobs.readers.pipeline_document import JOBS, on_one_cluster
from shared.jobs.spec import COMMAND, PIPELINE, JobSpec


class JobKind(Protocol):
    """One kind of job.

    `runs_a_command`: the job itself runs a command, on its own nodes and with its own inputs. Otherwise the inner
    jobs do. An inner job has no template, and is not fully read here.
    """

    @property
    def runs_a_command(self) -> bool: ...

    def on_its_cluster(self, job: JobSpec) -> JobSpec:
        """The job with every inner job on the cluster of the job itself."""

    def parts(self, job: JobSpec) -> tuple[WrittenStep, ...]:
        """The jobs within this job, in file order."""

    def part_faults(self, job: JobSpec, limits: Limits) -> Iterator[Problem]:
        """Every problem of the inner jobs. Each inner job must obey the limits of a separate job."""


class _Command:
    """A job without inner jobs."""

    runs_a_command = True

    def on_its_cluster(self, job: JobSpec) -> JobSpec:
        return job

    def parts(self, _job: JobSpec) -> tuple[WrittenStep, ...]:
        return ()

    def part_faults(self, _job: JobSpec, _limits: Limits) -> Iterator[Problem]:
        return iter(())


class _Pipeline:
    runs_a_command = False

    def on_its_cluster(self, job: JobSpec) -> JobSpec:
        return replace(job, rest={**job.rest, JOBS: on_one_cluster(job.rest.get(JOBS))})

    def parts(self, job: JobSpec) -> tuple[WrittenStep, ...]:
        return steps(job)

    def part_faults(self, job: JobSpec, limits: Limits) -> Iterator[Problem]:
        return pipeline_faults(job, limits)


KINDS: dict[str, JobKind] = {COMMAND: _Command(), PIPELINE: _Pipeline()}


def kind_of(job: JobSpec) -> JobKind:
    """The job's kind. An unsupported kind counts as a command until the rejection."""
    return KINDS.get(job.kind, KINDS[COMMAND])

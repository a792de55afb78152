"""The inputs for building a job: the template, the user's layer over it, and single values. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from shared.jobs.data import Data
from shared.jobs.limits import Limits
from shared.jobs.location import Location
from shared.jobs.parameters import Parameters
from shared.jobs.spec import JobSpec, Layer

if TYPE_CHECKING:
    from shared.jobs.search import Sweep


@dataclass(frozen=True)
class Values:
    """Single values of a job: a route's defaults, or the values in a request. None and 0 change nothing."""

    experiment: str = ""
    cluster: str = ""
    nodes: int = 0
    min_nodes: int = 0  # of an elastic run; 0 if not given
    timeout_seconds: float = 0.0
    processes: int = 0  # on each node
    parameters: Mapping[str, Any] = field(default_factory=dict)
    sweep: Sweep | None = None


@dataclass(frozen=True)
class JobOrder:
    """The inputs for building a job.

    `written` is the user's layer; `template` and `defaults` are the administrator's. `data` is the target of the input
    `data`. `root` is the drop in which relative paths of `written` lie ('' without a drop). `parameters` describes the
    template's literal inputs.
    """

    run: str
    title: str
    template: JobSpec
    limits: Limits
    defaults: Values = Values()
    written: Layer | None = None
    asked: Values = Values()
    data: Data | None = None
    root: Data | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    parameters: Parameters = field(default_factory=dict)
    from_model: Location | None = None  # the folder of the model to start from

    @property
    def own(self) -> JobSpec:
        """The user's own part of the job."""
        return self.written.job if self.written else JobSpec()

    @property
    def is_whole(self) -> bool:
        """Whether the user wrote a whole job: a job with a command, or without a template below."""
        return self.template == JobSpec() or self.own.has_commands

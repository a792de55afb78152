"""The processes of a run of the local cloud on this machine, for advice about a run that hangs."""

from __future__ import annotations

from pathlib import Path

MOST = 8  # processes in an advice
PROC = Path("/proc")


def stack_commands(run: str) -> list[str]:
    """Return the commands that print where each Python process of the run waits; empty if none is on this machine.

    The workspace gives each process the variable AZUREML_RUN_ID, which is the name of the run, or of a member's job. A
    worker has a RANK, too; the processes that only start workers are left out.
    """
    found = {pid: variables for pid, variables in _pythons() if variables.get("AZUREML_RUN_ID", "").startswith(run)}
    workers = [pid for pid, variables in found.items() if "RANK" in variables] or sorted(found)
    return [f"See where process {pid} waits: uvx py-spy dump --pid {pid}" for pid in sorted(workers)[:MOST]]


def _pythons() -> list[tuple[int, dict[str, str]]]:
    """Return the Python processes of this user, with their variables. Without /proc there are none."""
    found = []
    for folder in PROC.glob("[0-9]*"):
        try:
            program = (folder / "cmdline").read_bytes().split(b"\0")[0]
            if b"python" in program.rpartition(b"/")[2]:
                found.append((int(folder.name), _variables((folder / "environ").read_bytes())))
        except OSError:  # it ended, or it is another user's
            continue
    return found


def _variables(environ: bytes) -> dict[str, str]:
    pairs = (each.partition(b"=") for each in environ.split(b"\0"))
    return {name.decode("utf-8", "replace"): value.decode("utf-8", "replace") for name, _, value in pairs}

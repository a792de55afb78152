"""The log files of a job, the emulator's lines in them, and the message for a failure. No I/O."""

from __future__ import annotations

from pathlib import Path

from emulators.azureml.bodies.job_body import JobSpec
from emulators.azureml.kernel.models import Job

ERROR_LINES = 12  # of standard error in a failure's message


def log_names(spec: JobSpec) -> list[str]:
    """Return the name of each rank's log file. If the job is not distributed, its only process has the plain name."""
    if not spec.distributed and spec.world_size == 1:
        return ["user_logs/std_log.txt"]
    width = len(str(spec.world_size - 1))
    return [f"user_logs/std_log_process_{rank:0{width}d}.txt" for rank in range(spec.world_size)]


def heading(job: Job, notes: tuple[str, ...]) -> str:
    """Return the lines at the beginning of an attempt's log: how its environment differs, and why the job runs again.

    Without such lines, the log of a first attempt is exactly the program's output.
    """
    lines = [f"[azureml] {note}\n" for note in notes]
    if job.attempt > 1:
        lines.append(f"[azureml] attempt {job.attempt} runs the command again: {job.notice}\n")
    return "".join(lines)


def failure(spec: JobSpec, rank: int, status: int, last_words: str) -> str:
    """Return the error message of a job: the first failed process, with the end of its standard error."""
    lines = last_words.splitlines()[-ERROR_LINES:]
    return (
        f"Execution failed. User process '{_program(spec.command)}' exited with status code {status}. Please check log "
        f"file '{log_names(spec)[rank]}' for error details. Error: {chr(10).join(lines)}"
    )


def _program(command: str) -> str:
    """Return the command's first word after the variable assignments."""
    words = (word for word in command.split() if "=" not in word)
    return Path(next(words, command)).name

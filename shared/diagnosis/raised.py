"""An exception in a log, with its frames, its chain and its rank."""

from __future__ import annotations

import re
from dataclasses import dataclass

from shared.diagnosis.lines import LogLine

LIBRARY = re.compile(
    r"(?:site|dist)-packages[/\\]|[/\\]lib[/\\]python\d|[/\\]python\d\.\d+[/\\]lib[/\\]"
    r"|<frozen |<string>|importlib|runpy\.py"
)
LAUNCHED_BY = re.compile(
    r"torchrun$|torch[/\\]distributed[/\\](?:run|launch|elastic)|accelerate[/\\]commands|multiprocessing[/\\]spawn"
)
SPAWNED_BY = re.compile(r"torch[/\\]multiprocessing[/\\]spawn")
DIED = ("ActorDiedError", "RayActorError", "WorkerCrashedError")
QUOTES_DEATH = re.compile(rf"RayTaskError: (?:{'|'.join(DIED)})\)")
PLATFORMS = (
    "ExecuteUserScriptError",
    "AlgorithmError",
    "ExperimentExecutionException",
    "ActivityFailedException",
    "UnexpectedStatusException",
    *DIED,
    "RayTaskError",
)  # their message may quote the cause
LOST = ("ConnectionResetError", "ConnectionRefusedError", "EOFError", "BrokenPipeError", "FileNotFoundError")
ASKS_WORKER = ("_try_get_data", "_try_get_batch")  # of torch's data loader
MULTIPROCESSING = re.compile(r"[/\\]multiprocessing[/\\]")
QUEUE_ENDED = re.compile(r"(?:En|De)queue operation was cancelled")
DISTRIBUTED = re.compile(r"(?i)\bgloo|\bnccl|\brank|\bpeer|\d+\.\d+\.\d+\.\d+")
LAUNCHERS = (
    "ChildFailedError",
    "CalledProcessError",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SystemExit",
    "SignalException",
)


@dataclass(frozen=True)
class Frame:
    """One frame of a traceback."""

    file: str
    line: int
    name: str

    @property
    def own(self) -> bool:
        """Whether the frame is in the user's code and not in a library."""
        return LIBRARY.search(self.file) is None


@dataclass(frozen=True)
class Raised:
    """One exception in the log.

    - `first`, `last`: the numbers of its first and its last line
    - `line`: the line that names the exception
    - `message`: the whole message of the exception, up to MESSAGE_LINES lines
    - `chain`: the number of its chain; exceptions of one chain were raised while the first was handled
    - `ignored`: Python ignored the exception, as in a destructor
    - `full`: the log contains the traceback, and not only the line that names the exception
    """

    first: int
    last: int
    line: LogLine
    type: str
    message: str
    frames: tuple[Frame, ...] = ()
    chain: int = 0
    rank: int | None = None
    ignored: bool = False
    full: bool = True

    @property
    def short_type(self) -> str:
        """The type without its module."""
        return self.type.rpartition(".")[2]

    @property
    def named_as_error(self) -> bool:
        """Whether its type has a name like an exception's. Another dotted name before a colon may be a logger's
        name.
        """
        return self.full or self.short_type.endswith(("Error", "Exception", "Interrupt"))

    @property
    def by_queue(self) -> bool:
        """Whether a queue or a pool of multiprocessing, or a queue of TensorFlow, lost its other end, which follows
        when a process has ended.
        """
        if QUEUE_ENDED.search(self.text):
            return True
        lost = self.short_type in ("BrokenPipeError", "ConnectionResetError", "EOFError")
        return (
            lost
            and (bool(self.frames) or self.short_type != "EOFError")
            and all(MULTIPROCESSING.search(each.file) for each in self.frames)
            and not DISTRIBUTED.search(self.text)
        )

    @property
    def of_dead_worker(self) -> bool:
        """Whether a data loader lost its connection to a worker, which follows when the worker was killed."""
        lost = self.cut or self.short_type in LOST
        return lost and any(each.name in ASKS_WORKER for each in self.frames)

    @property
    def by_launcher(self) -> bool:
        """Whether a launcher raised the exception because one of its processes failed."""
        launched = bool(self.frames) and all(
            LAUNCHED_BY.search(each.file) or each.name in ("main", "<module>") for each in self.frames
        )
        waited = bool(self.frames) and SPAWNED_BY.search(self.frames[-1].file) is not None
        return self.short_type in LAUNCHERS or waited or (launched and self.cut)

    @property
    def by_platform(self) -> bool:
        """Whether a platform raised the exception because a job failed."""
        return self.short_type in PLATFORMS

    @property
    def of_dead_process(self) -> bool:
        """Whether Ray raised the exception because another process died."""
        return self.short_type in DIED or QUOTES_DEATH.search(self.text) is not None

    @property
    def cut(self) -> bool:
        """Whether the log ends before the exception's own line."""
        return not self.type

    @property
    def type_of_head(self) -> bool:
        """Whether only the traceback's head names the type, because the exception's own line is missing."""
        return not self.message and self.short_type not in self.line.text

    @property
    def text(self) -> str:
        """The type and the whole message."""
        return f"{self.type}: {self.message}"

    @property
    def library_frames(self) -> tuple[Frame, ...]:
        """The frames below the last frame of the user's own code."""
        own = [index for index, frame in enumerate(self.frames) if frame.own]
        return self.frames[own[-1] + 1 :] if own else self.frames

    @property
    def where(self) -> str | None:
        """The last frame in the user's own code, as `file:line in function`."""
        own = [frame for frame in self.frames if frame.own]
        return f"{own[-1].file}:{own[-1].line} in {own[-1].name}" if own else None

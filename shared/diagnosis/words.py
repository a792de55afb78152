"""The words that show a cause (words.yaml), compiled on first use."""

from __future__ import annotations

import re
from enum import IntEnum
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from shared.diagnosis.causes import Cause
from shared.diagnosis.raised import Raised

FILE = Path(__file__).with_name("words.yaml")
SHARED_MEMORY = re.compile(
    r"posix_fallocate|shm\.h\b|shmutils|"
    r"SemLock|sem_open|semaphore|/dev/shm|/psm_\w|nccl-shm|torch_shm|Memory file system"
    r"|joblib will operate in serial mode"
    r"|multiprocessing[/\.](?:synchronize|heap|queues|context|sharedctypes)|ctx\.Lock|SimpleQueue"
)
OF_REQUESTS = re.compile(r"(?i)http|\b(?:azure|botocore|urllib3?|requests|google)\.")
LOADS_CHECKPOINT = re.compile(  # functions that put a checkpoint's tensors into a model or an optimizer
    r"(?m) (?:_?load_(?:from_)?(?:checkpoint|state_dict|pretrained_model|weights)|resume\w*|set_\w*state_dict"
    r"|_?restore\w*|load_hook)$"
)
RAISED_IN = (  # libraries whose exceptions have one cause, whatever their words are
    (
        Cause.NETWORK,
        re.compile(
            r"[/\\](?:urllib3?|http|requests|aiohttp|httpx|gdown|huggingface_hub)[/\\]|[/\\](?:socket|ssl|wget)\.py"
            r"|torch[/\\]hub\.py|torchvision[/\\]datasets[/\\]utils\.py| \w*download\w*$"
        ),
    ),
    (
        Cause.ARGUMENT_ERROR,
        re.compile(r"[/\\](?:argparse\.py|(?:omegaconf|hydra|absl[/\\]flags|yacs|click|fire)[/\\])"),
    ),
    (Cause.CHECKPOINT_MISMATCH, re.compile(r" load_state_dict$")),
    (Cause.MISSING_MODULE, re.compile(r" <module>$")),  # a package fails while it is imported
)
PLACES = (
    (Cause.RENDEZVOUS_OR_RESET, re.compile(r"torch[/\\]distributed[/\\]rendezvous\.py|_create_c10d_store|TCPStore")),
    (Cause.CORRUPT_FILE, re.compile(r"[/\\](?:tarfile|zipfile|gzip|PIL[/\\]\w+)\.py")),
    (Cause.NETWORK, re.compile(r"[/\\](?:urllib3?|http|requests|aiohttp|httpx)[/\\]|[/\\](?:socket|ssl)\.py")),
    (Cause.MISSING_MODULE, re.compile(r"<frozen importlib|[/\\]importlib[/\\]")),
    (Cause.CHECKPOINT_MISMATCH, re.compile(r" load_state_dict$")),
)  # the place of a traceback's last frame


class Weight(IntEnum):
    """The weight of a sign. The heaviest sign decides, wherever it is; among signs of equal weight, the earliest
    decides.

    - `PLATFORM`: the platform or the scheduler states why it ended the job
    - `ASSERTION`: CUDA's own assertion, which may stand before or after the exceptions that it causes
    - `CAUSE`: an exception, a guard or a kill with a cause of its own
    - `CONSEQUENCE`: errors of other ranks when one rank is gone, and exceptions of the user's own code
    - `PROSE`: an exception or a line of a platform that a person quotes beside the log
    - `SUMMARY`: a launcher's summary without the exception itself
    - `WORDS`: a person's words
    - `TOLD`: a cause's words in a sentence of a person that tells of trouble
    - `CUT`: a traceback whose last line is missing
    """

    CUT = 5
    TOLD = 8
    WORDS = 10
    SUMMARY = 20
    PROSE = 25
    CONSEQUENCE = 30
    CAUSE = 40
    ASSERTION = 50
    PLATFORM = 60


COMMAND = "<string>"  # the file of a frame in the code of `python -c`


@cache
def _file() -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = yaml.safe_load(FILE.read_text("utf-8"))
    return found


@cache
def _of_exceptions() -> tuple[tuple[Cause, re.Pattern[str]], ...]:
    return tuple((Cause(row["cause"]), _any_of(row, re.DOTALL | re.IGNORECASE)) for row in _file()["exceptions"])


@cache
def of_log_lines() -> tuple[tuple[Cause, Weight, re.Pattern[str]], ...]:
    """Return the causes that a line of a log shows, with their weight and a pattern of their words."""
    rows = [(Cause(row["cause"]), Weight[row["weight"].upper()], row) for row in _file()["lines"]]
    return tuple((cause, its, _any_of(row, re.IGNORECASE * (its is Weight.PLATFORM))) for cause, its, row in rows)


def _any_of(row: dict[str, Any], flags: int = 0) -> re.Pattern[str]:
    return re.compile("|".join(row["words"]), flags)


def cause_of(raised: Raised) -> Cause:
    """Return the cause that an exception's type and words show; USER_EXCEPTION if they show no other cause."""
    if raised.of_dead_worker:
        return Cause.DATALOADER_WORKER
    places = "\n".join(f"{frame.file} {frame.name}" for frame in raised.frames)
    cause = next((cause for cause, pattern in _of_exceptions() if pattern.search(raised.text)), Cause.USER_EXCEPTION)
    if cause is Cause.RENDEZVOUS_OR_RESET and OF_REQUESTS.search(raised.text):
        return Cause.NETWORK
    if cause is Cause.SHAPE_MISMATCH and LOADS_CHECKPOINT.search(places):
        return Cause.CHECKPOINT_MISMATCH
    if cause is Cause.USER_EXCEPTION:
        return _of_library(raised)
    return in_shared_memory(cause, f"{raised.text}\n{places}")


def _of_library(raised: Raised) -> Cause:
    """Return the cause of an exception without known words from the library that raised it."""
    last = [frame for frame in raised.library_frames[-1:] if frame.file != COMMAND]
    place = "".join(f"{frame.file} {frame.name}" for frame in last)
    return next((cause for cause, pattern in RAISED_IN if pattern.search(place)), Cause.USER_EXCEPTION)


def cause_of_place(raised: Raised) -> Cause:
    """Return the likely cause of an exception whose own line is missing, from the place where it was raised."""
    if raised.of_dead_worker:
        return Cause.DATALOADER_WORKER
    last = raised.frames[-1] if raised.frames else None
    place = f"{last.file} {last.name}" if last else ""
    return next((cause for cause, pattern in PLACES if pattern.search(place)), Cause.USER_EXCEPTION)


def cause_of_message(text: str) -> Cause | None:
    """Return the cause that an exception's words show where the type is missing, as in a title; None without a
    cause.
    """
    cause = next((cause for cause, pattern in _of_exceptions() if pattern.search(text)), None)
    return in_shared_memory(cause, text) if cause else None


def cause_of_beginning(text: str) -> Cause | None:
    """Return the cause of a line that begins with an exception's words, as a message without its type does."""
    plain = text.lstrip(" >*`'\"“‘-")
    found = next((cause for cause, pattern in _of_exceptions() if pattern.match(plain)), None)
    return in_shared_memory(found, text) if found else None


def in_shared_memory(cause: Cause, text: str) -> Cause:
    """Return the cause. A full disk becomes full shared memory if the text names it: Linux reports "No space left
    on device" for both.
    """
    return Cause.SHM_BUS_ERROR if cause is Cause.DISK_FULL and SHARED_MEMORY.search(text) else cause

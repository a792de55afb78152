"""The rows of a text drop in every process: the processes share one tokenizer, and one process on each node
tokenizes.
"""

from __future__ import annotations

import hashlib
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import dist
import files
import torch
from bert import text
from tokenizers import Tokenizer

# Seconds that a process tokenises before it checks whether any process got SIGTERM.
SLICE_SECONDS = 2.0

T = TypeVar("T")


@dataclass(frozen=True)
class Source:
    """The text, and the settings for turning text into rows of `length` tokens. The settings of the same names
    explain each field."""

    data: Path
    tokenizer: Path | None
    vocabulary: int
    length: int
    val_share: float


@dataclass(frozen=True)
class Corpus:
    """Training rows, held-out rows, and their tokenizer as JSON, equal in every process."""

    tokenizer: str
    specials: text.Specials
    vocabulary: int
    train: text.Rows
    held_out: text.Rows

    @property
    def fingerprint(self) -> str:
        """Return a value that changes with the texts or the tokenizer. It is computed from the tokenizer and the
        numbers of tokens."""
        facts = f"{self.tokenizer} {self.train.tokens} {self.held_out.tokens}"
        return hashlib.blake2b(facts.encode(), digest_size=8).hexdigest()


def prepare(source: Source, place: dist.Place, stop: dist.StopRequest) -> Corpus:
    """Tokenize the text on each node's disk, and map the result. If any process finds bad data, every process raises
    DataError.

    The files are deleted as soon as all processes have mapped them. The disk space is then free when the processes end,
    even after a crash.
    """
    hosts = _gathered(socket.gethostname(), place)
    leads = hosts.index(hosts[place.rank]) == place.rank
    held = text.Held(max(2, round(1 / source.val_share)))
    with tempfile.TemporaryDirectory(prefix="tokens-", ignore_cleanup_errors=True) as folder, ExitStack() as stack:

        def find() -> list[Path]:
            return text.text_files(stack.enter_context(files.opened(source.data))) if leads else []

        paths = _together(find, place)
        box = [_together(lambda: _tokenizer(source, paths, held) if place.rank == 0 else "", place)]
        torch.distributed.broadcast_object_list(box)
        tokenizer = Tokenizer.from_str(box[0])
        work = text.tokenise(paths, held, tokenizer, Path(folder)) if leads else iter(())
        _together(lambda: _in_slices(work, stop), place)

        path = Path(_gathered(folder, place)[hosts.index(hosts[place.rank])])
        specials, kind = text.Specials.of(tokenizer), text.number_type(tokenizer)
        rows = [text.Rows(path / name, kind, source.length, specials) for name in ("train", "held_out")]
        corpus = Corpus(box[0], specials, tokenizer.get_vocab_size(), *rows)
        _together(lambda: _check(corpus, source), place)  # so no process deletes files that another has not mapped yet
    return corpus


def _tokenizer(source: Source, paths: list[Path], held: text.Held) -> str:
    """Return the tokenizer from the command line, otherwise from the drop's top folder, otherwise a new tokenizer."""
    in_drop = source.data / text.TOKENIZER
    given = source.tokenizer or (in_drop if in_drop.is_file() else None)
    tokenizer = text.load_tokenizer(given) if given else text.train_tokenizer(paths, held, source.vocabulary)
    return tokenizer.to_str()


def _in_slices(work: Iterator[None], stop: dist.StopRequest) -> None:
    """Do the work in slices, and meet the other processes between slices. So every process stops at the same slice,
    and no process is silent for too long."""
    error, busy = None, True
    while dist.all_sum(torch.tensor(int(busy))):
        stop.check(0)
        until = time.monotonic() + SLICE_SECONDS
        try:
            while busy and time.monotonic() < until:
                busy = next(work, work) is None
        except files.DataError as found:
            error, busy = found, False
    if error:
        raise error


def _check(corpus: Corpus, source: Source) -> None:
    for name, rows in (("to train on", corpus.train), ("held out", corpus.held_out)):
        if not len(rows):
            raise files.DataError(
                f"{source.data}: expected at least {source.length - 2} tokens {name}, found {rows.tokens}; a piece of "
                f"up to {text.PIECE:,} characters in {round(1 / source.val_share)} is held out (--val-share)"
            )


def _gathered(value: str, place: dist.Place) -> list[str]:
    """Return each process's message, by rank."""
    values = [""] * place.world_size
    torch.distributed.all_gather_object(values, value)
    return values


def _together(work: Callable[[], T], place: dist.Place) -> T:
    """Call `work` and return the result. A DataError in any process is raised in every process."""
    result, error = None, ""
    try:
        result = work()
    except files.DataError as found:
        error = str(found)
    if errors := [each for each in _gathered(error, place) if each]:
        raise files.DataError(errors[0])
    return result  # type: ignore[return-value]

"""Text of any size as rows of tokens: read in pieces, tokenized once into a file of numbers, and mapped into memory.

The tokens are in a file on the node's disk, and not in a stream with a shuffle buffer. The number of rows is known
before the first step, so an epoch, its schedule and a position in the epoch are exact. Every row is available at any
time, so the order is random over the whole text. The memory holds only one batch. In return, each job reads the whole
text once at the start, and needs disk space of about half the text's size.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO

import numpy as np
from data_checks.text import PIECE as PIECE
from data_checks.text import TOKENIZER as TOKENIZER
from data_checks.text import is_text
from files import BROKEN, DataError
from numpy.typing import NDArray
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

TOGETHER = 64  # pieces that are tokenised at once: 1 MiB, and about ten times that in memory
SAMPLE_BYTES = 64 * 2**20  # of text that a tokenizer is trained on; more changes it little and takes minutes
# The accepted names of the required tokens: BERT's, or RoBERTa's.
NAMES = {"cls": ("[CLS]", "<s>"), "sep": ("[SEP]", "</s>"), "mask": ("[MASK]", "<mask>"), "pad": ("[PAD]", "<pad>")}


def text_files(folder: Path) -> list[Path]:
    """Return the files below `folder`, sorted, without hidden files, a drop's markers and tokenizer.json. Raises
    DataError for an empty folder.
    """
    found = [
        path for path in sorted(folder.rglob("*")) if path.is_file() and is_text(path.relative_to(folder).as_posix())
    ]
    if not any(path.stat().st_size for path in found):
        raise DataError(f"{folder}: expected files with text in UTF-8, .gz or not, found none")
    return found


def pieces(paths: list[Path]) -> Iterator[str]:
    """Yield the text of the files in order, in pieces of up to 2 * PIECE characters that end with a line if possible.

    Raises DataError for a file that is not UTF-8, or whose name wrongly claims gzip.
    """
    for path in paths:
        opener = gzip.open if path.name.lower().endswith(".gz") else open
        try:
            with opener(path, "rt", encoding="utf-8-sig", newline=None) as stream:
                for piece in _cut(stream):
                    if "\0" in piece:
                        raise DataError(f"{path}: expected text in UTF-8, found a zero byte")
                    yield piece
        except UnicodeDecodeError as error:
            byte = error.object[error.start]
            raise DataError(f"{path}: expected text in UTF-8, found the byte 0x{byte:02x}: {error.reason}") from error
        except BROKEN as error:
            raise DataError(f"{path}: expected a gzip file, found {type(error).__name__}: {error}") from error


def _cut(stream: IO[str]) -> Iterator[str]:
    """Yield pieces of text. The text after a block's last newline (or, without one, its last space) goes to the
    next piece."""
    rest, block = "", stream.read(PIECE)
    while block:
        following = stream.read(PIECE)
        text = rest + block
        end = text.rfind("\n") + 1 or text.rfind(" ") + 1 or len(text)
        piece, rest = (text[:end], text[end:]) if following else (text, "")
        if not piece.isspace():
            yield piece
        block = following


@dataclass(frozen=True)
class Held:
    """The pieces held out for validation: the first of every `every` pieces of the whole text."""

    every: int

    def out(self, number: int) -> bool:
        return number % self.every == 0


def train_tokenizer(paths: list[Path], held: Held, vocabulary: int) -> Tokenizer:
    """Return a byte-level BPE tokenizer of up to `vocabulary` tokens, trained on the pieces that are not held out.

    A byte-level tokenizer can encode any text. From a text of more than SAMPLE_BYTES, training reads evenly spread
    pieces.
    """
    size = sum(path.stat().st_size for path in paths)
    stride = -(-size // SAMPLE_BYTES)
    learned = (piece for number, piece in enumerate(pieces(paths)) if not held.out(number))
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    # [MASK] includes the preceding space, because a word's token begins with its space.
    specials = [AddedToken(names[0], lstrip=names[0] == "[MASK]", special=True) for names in NAMES.values()]
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        min_frequency=2,
        special_tokens=specials,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(islice(learned, 0, None, stride), trainer)
    ids = Specials.of(tokenizer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", ids.cls), ("[SEP]", ids.sep)],
    )
    return tokenizer


@dataclass(frozen=True)
class Specials:
    """The numbers of the special tokens, which are not text."""

    cls: int
    sep: int
    mask: int
    pad: int

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> Specials:
        """Return the special tokens of a tokenizer. Raises DataError if one is missing."""
        ids = {}
        for kind, names in NAMES.items():
            numbers = [number for name in names if (number := tokenizer.token_to_id(name)) is not None]
            if not numbers:
                raise DataError(f"{TOKENIZER}: expected a token {' or '.join(names)}, found none")
            ids[kind] = numbers[0]
        return cls(**ids)


def load_tokenizer(path: Path) -> Tokenizer:
    """Read a tokenizer.json. Raises DataError for any other file, and if a required token is missing."""
    try:
        tokenizer = Tokenizer.from_str(path.read_text(encoding="utf-8"))
    except Exception as error:  # the library raises nothing narrower
        raise DataError(f"{path}: expected a {TOKENIZER}, found {type(error).__name__}: {error}") from error
    Specials.of(tokenizer)
    return tokenizer


def number_type(tokenizer: Tokenizer) -> type[np.uint16 | np.uint32]:
    return np.uint16 if tokenizer.get_vocab_size() <= 2**16 else np.uint32


def tokenise(paths: list[Path], held: Held, tokenizer: Tokenizer, folder: Path) -> Iterator[None]:
    """Write the tokens of all pieces, with [SEP] after each, to `folder`/train and folder/held_out. Yields
    regularly."""
    tokenizer.encode_special_tokens = True  # "[MASK]" in a text is six characters
    tokenizer.no_truncation()
    tokenizer.no_padding()
    sep, kind = Specials.of(tokenizer).sep, number_type(tokenizer)
    numbered = enumerate(pieces(paths))
    with (folder / "train").open("wb") as train, (folder / "held_out").open("wb") as held_out:
        while batch := list(islice(numbered, TOGETHER)):
            encoded = tokenizer.encode_batch_fast([piece for _, piece in batch], add_special_tokens=False)
            for (number, _), tokens in zip(batch, encoded, strict=True):
                out = held_out if held.out(number) else train
                out.write(np.array([*tokens.ids, sep], dtype=kind).tobytes())
            yield


class Rows:
    """The packed tokens of a file: each row is [CLS], the next `length` - 2 tokens, [SEP]. The last few tokens are left
    out.

    Rows do not end with documents, and [SEP] separates two documents within a row: the "full sentences" of RoBERTa, Liu
    et al. 2019, arXiv:1907.11692, section 4.2. No row has padding.
    """

    def __init__(self, path: Path, kind: type[np.uint16 | np.uint32], length: int, specials: Specials) -> None:
        self._specials = specials
        self._tokens: NDArray[np.uint16 | np.uint32] = (
            np.memmap(path, kind, "r") if path.stat().st_size else np.empty(0, kind)
        )
        count = len(self._tokens) // (length - 2)
        self._text = self._tokens[: count * (length - 2)].reshape(count, length - 2)

    def __len__(self) -> int:
        return len(self._text)

    @property
    def tokens(self) -> int:
        """Return the number of tokens in the file."""
        return len(self._tokens)

    def __getitem__(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the given rows, (N, length)."""
        text = self._text[rows].astype(np.int64)
        edge = np.ones((len(rows), 1), dtype=np.int64)
        return np.hstack([edge * self._specials.cls, text, edge * self._specials.sep])

"""The damaged files of a sample, and the conclusion about all files. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from heapq import nsmallest
from itertools import chain, islice
from math import comb

CONFIDENCE = 0.95


def choose(paths: Iterable[str], size: int, seed: str) -> list[str]:
    """Return `size` of the paths, or all: the same choice for the same seed in any process, in the order of a hash."""
    rest = iter(paths)
    first = list(islice(rest, size + 1))
    if len(first) <= size:
        return first

    def rank(path: str) -> bytes:
        return hashlib.blake2b(f"{seed}\0{path}".encode(), digest_size=8).digest()

    return nsmallest(size, chain(first, rest), rank)


def at_most(damaged: int, read: int) -> float:
    """Return the upper limit of the share of damaged files, with CONFIDENCE, if `damaged` of `read` files are damaged.

    The one-sided limit of Clopper and Pearson, Biometrika 26 (1934): the largest share for which at most this many
    damaged files in the sample still have a probability of 1 - CONFIDENCE. The limit assumes draws with replacement, so
    it is on the safe side here.
    """
    if damaged >= read:
        return 1.0
    low, high = damaged / read, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        if _probability(damaged, read, middle) > 1 - CONFIDENCE:
            low = middle
        else:
            high = middle
    return high


def _probability(damaged: int, read: int, share: float) -> float:
    """Return the probability of at most `damaged` damaged files in `read` draws."""
    return sum(comb(read, k) * share**k * (1 - share) ** (read - k) for k in range(damaged + 1))


def sentence(damaged: int, read: int, files: int, in_part: Collection[str] = ()) -> str:
    """Return a sentence about the sample: "300 of 92,000 were read: fewer than 1 % are damaged, with 95 % confidence".

    `in_part` files were read only in part.
    """
    part = f" Of {len(in_part):,} of them only parts were read." if in_part else ""
    return _of_sample(damaged, read, files) + part


def _of_sample(damaged: int, read: int, files: int) -> str:
    if read >= files:
        return f"All {files:,} were read."
    limit = at_most(damaged, read)
    share = f"{100 * limit:.1f} %" if limit < 0.1 else f"{100 * limit:.0f} %"
    found = f"{damaged:,} of them damaged: " if damaged else ""
    return f"{read:,} of {files:,} were read: {found}fewer than {share} are damaged, with {CONFIDENCE:.0%} confidence."

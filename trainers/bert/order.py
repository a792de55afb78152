"""Random orders and masks as functions of a position, without a generator's state: the order of rows, and the tokens to
mask.

No state has to be kept, saved or sent: any process can compute any part of any epoch. A training that continues after a
stop, even with another number of processes, sees the same rows and masks.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# Devlin et al. 2018, arXiv:1810.04805, section 3.1: 15 % of the tokens are predicted; of these 80 % are replaced by
# [MASK], 10 % by a random token, and 10 % stay as they are.
PREDICTED, REPLACED, RANDOM = 0.15, 0.8, 0.1

Numbers = NDArray[np.uint64]
Indices = NDArray[np.int64]


def key(*parts: object) -> int:
    """Return a 64-bit key for a purpose, a seed and an epoch. Different keys give unrelated random numbers."""
    return int.from_bytes(hashlib.blake2b(repr(parts).encode(), digest_size=8).digest())


def noise(seed: int, counters: Numbers) -> Numbers:
    """Return a random 64-bit number for each counter: SplitMix64, Steele et al. 2014, doi:10.1145/2660193.2660195."""
    z = np.uint64(seed) + (counters + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def shuffled(positions: Indices, count: int, seed: int) -> Indices:
    """Return the rows at these positions of a random order of `count` rows, (N,) in 0..count-1. Uses memory in
    proportion to `positions`.

    A Feistel network of four rounds is a permutation of the next power of four. A result of `count` or above is
    permuted again until it is below `count`: Black and Rogaway 2002, "Ciphers with Arbitrary Finite Domains", section
    4.
    """
    half = np.uint64(max(1, ((count - 1).bit_length() + 1) // 2))
    low = (np.uint64(1) << half) - np.uint64(1)
    rows = positions.astype(np.uint64)
    outside = np.ones(len(rows), dtype=bool)
    while outside.any():
        left, right = rows[outside] >> half, rows[outside] & low
        for turn in range(4):
            left, right = right, left ^ (noise(seed + turn & 2**64 - 1, right) & low)
        rows[outside] = left << half | right
        outside = rows >= count
    return rows.astype(np.int64)


@dataclass(frozen=True)
class Masked:
    """Rows to learn from: the model's input, the masked positions, and the correct tokens at these positions."""

    inputs: Indices  # (N, L)
    positions: Indices  # (N, K), ascending
    targets: Indices  # (N, K)


def predicted(length: int) -> int:
    """Return K, the number of tokens to predict in a row of `length`. Every row has K predictions, and therefore
    equal weight."""
    return max(1, round(PREDICTED * length))


def mask(tokens: Indices, rows: Indices, seed: int, vocabulary: int, mask_token: int, fixed: list[int]) -> Masked:
    """Mask tokens (N, L) of the given rows (N,), with random numbers that depend only on seed, row and position.

    The `fixed` tokens ([CLS] and [SEP]) are predicted only if a row has no other tokens left.
    """
    length = tokens.shape[1]
    counters = (rows[:, None] * length + np.arange(length)).astype(np.uint64)
    rank = noise(key(seed, "where"), counters) >> np.uint64(1)
    rank[np.isin(tokens, fixed)] |= np.uint64(2**63)
    positions = np.sort(np.argpartition(rank, predicted(length) - 1)[:, : predicted(length)])

    counters = np.take_along_axis(counters, positions, 1)
    share = noise(key(seed, "how"), counters) / 2.0**64
    words = (noise(key(seed, "word"), counters) % np.uint64(vocabulary)).astype(np.int64)
    targets = np.take_along_axis(tokens, positions, 1)
    shown = np.where(share < REPLACED, mask_token, np.where(share < REPLACED + RANDOM, words, targets))
    inputs = tokens.copy()
    np.put_along_axis(inputs, positions, shown, 1)
    return Masked(inputs, positions, targets)

"""Points of a Sobol sequence: each new point lies in the largest gap between the previous points. Pure.

The direction numbers are by Joe and Kuo (new-joe-kuo-6.21201, https://web.maths.unsw.edu.au/~fkuo/sobol/, BSD license):
for each dimension from the second on, the primitive polynomial, with all its coefficients as bits, and its first
numbers. A sweep's points are shifted digit by digit with random bits of the sweep's seed, which keeps them evenly
distributed.
"""

from __future__ import annotations

import hashlib
from functools import cache

BITS = 30
JOE_KUO = """
3,1 7,1,3 11,1,3,1 13,1,1,1 19,1,1,3,3 25,1,3,5,13 37,1,1,5,5,17 41,1,1,5,5,5 47,1,1,7,11,19 55,1,1,5,1,1
59,1,1,1,3,11 61,1,3,5,5,31 67,1,3,3,9,7,49 91,1,1,1,15,21,21 97,1,3,1,13,27,49 103,1,1,1,15,7,5
109,1,3,1,15,13,25 115,1,1,5,5,19,61 131,1,3,7,11,23,15,103 137,1,3,7,13,13,15,69 143,1,1,3,13,7,35,63
145,1,3,5,9,1,25,53 157,1,3,1,13,9,35,107 167,1,3,1,5,27,61,31 171,1,1,5,11,19,41,61 185,1,3,5,3,3,13,69
191,1,1,7,13,1,19,1 193,1,3,7,5,13,19,59 203,1,1,3,9,25,29,41 211,1,3,5,13,23,1,55 213,1,3,7,3,13,59,17
229,1,3,1,3,5,53,69 239,1,1,5,5,23,33,13 241,1,1,7,7,1,61,123 247,1,1,7,9,13,61,49 253,1,3,3,5,3,55,33
285,1,3,1,15,31,13,49,245 299,1,3,5,15,31,59,63,97 301,1,3,1,11,11,11,77,249 333,1,3,1,11,27,43,71,9
351,1,1,7,15,21,11,81,45 355,1,3,7,3,25,31,65,79 357,1,3,1,1,19,11,3,205 361,1,1,5,9,19,21,29,157
369,1,3,7,11,1,33,89,185 391,1,3,3,3,15,9,79,71 397,1,3,7,11,15,39,119,27 425,1,1,3,1,11,31,97,225
451,1,1,1,3,23,43,57,177 463,1,3,7,7,17,17,37,71 487,1,3,1,5,27,63,123,213 501,1,1,3,5,11,43,53,133
529,1,3,5,5,29,17,47,173,479 539,1,3,3,11,3,1,109,9,69 545,1,1,1,5,17,39,23,5,343 557,1,3,1,5,25,15,31,103,499
563,1,1,1,11,11,17,63,105,183 601,1,1,5,11,9,29,97,231,363 607,1,1,5,15,19,45,41,7,383
617,1,3,7,7,31,19,83,137,221 623,1,1,1,3,23,15,111,223,83 631,1,1,5,13,31,15,55,25,161
637,1,1,3,13,25,47,39,87,257
"""


def point(dimensions: int, seed: int, number: int) -> list[float]:
    """The point with this number, from 0, in the unit cube. Dimensions beyond those of JOE_KUO are random."""
    known = _directions()[:dimensions]
    digits = [_digits(row, number) ^ _bits(f"{seed} {dimension}") for dimension, row in enumerate(known)]
    digits += [_bits(f"{seed} {dimension} {number}") for dimension in range(len(known), dimensions)]
    return [each / 2**BITS for each in digits]


def _bits(text: str) -> int:
    """BITS pseudo-random bits from a hash."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=4).digest()) >> (32 - BITS)


def _digits(directions: tuple[int, ...], number: int) -> int:
    """The digits of a coordinate: the directions of the set bits in the number's Gray code, combined by XOR."""
    found, gray = 0, number ^ (number >> 1)
    for bit in range(gray.bit_length()):
        if gray >> bit & 1:
            found ^= directions[bit % BITS]
    return found


@cache
def _directions() -> tuple[tuple[int, ...], ...]:
    """BITS direction numbers for each dimension, by the recurrence of Bratley and Fox (ACM TOMS 659)."""
    first = tuple(1 << (BITS - 1 - bit) for bit in range(BITS))
    return (first, *(_of_dimension(*map(int, row.split(","))) for row in JOE_KUO.split()))


def _of_dimension(polynomial: int, *begin: int) -> tuple[int, ...]:
    degree = len(begin)
    found = [number << (BITS - 1 - bit) for bit, number in enumerate(begin)]
    for bit in range(degree, BITS):
        number = found[bit - degree] ^ (found[bit - degree] >> degree)
        for step in range(1, degree):
            if polynomial >> (degree - step) & 1:
                number ^= found[bit - step]
        found.append(number)
    return tuple(found)

"""The hashes of ARM's functions: uniqueString and guid return Azure's values.

guid is a UUID of version 5 in ARM's own namespace. uniqueString is MurmurHash3 in two halves of 32 bits, written in
base 32. Tests compare both with values of Microsoft's engine.
"""

from __future__ import annotations

import uuid

NAMESPACE = uuid.UUID("11fb06fb-712d-4ddd-98c7-e71bbd588830")
ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"
MASK = 0xFFFFFFFF
FIRST, SECOND = 0x239B961B, 0xAB0E9789


def guid(*parts: str) -> str:
    return str(uuid.uuid5(NAMESPACE, "-".join(parts)))


def unique_string(*parts: str) -> str:
    number = murmur64("-".join(parts).encode())
    return "".join(ALPHABET[number >> shift & 31] for shift in range(59, -1, -5)) + ALPHABET[number << 1 & 31]


def murmur64(data: bytes) -> int:
    """Return two halves of 32 bits each. Blocks of 8 bytes change both halves in turn."""
    low = high = 0
    whole = len(data) - len(data) % 8
    for at in range(0, whole, 8):
        low ^= _low(int.from_bytes(data[at : at + 4], "little"))
        low = (_rotated(low, 19) + high) * 5 + 0x561CCD1B & MASK
        high ^= _high(int.from_bytes(data[at + 4 : at + 8], "little"))
        high = (_rotated(high, 13) + low) * 5 + 0x0BCAA747 & MASK
    rest = data[whole:]
    low ^= _low(int.from_bytes(rest[:4], "little")) ^ len(data)
    high ^= _high(int.from_bytes(rest[4:], "little")) ^ len(data)
    low, high = _added(low, high)
    low, high = _added(_mixed(low), _mixed(high))
    return high << 32 | low


def _low(block: int) -> int:
    return _rotated(block * FIRST & MASK, 15) * SECOND & MASK


def _high(block: int) -> int:
    return _rotated(block * SECOND & MASK, 17) * FIRST & MASK


def _added(low: int, high: int) -> tuple[int, int]:
    low = low + high & MASK
    return low, high + low & MASK


def _mixed(half: int) -> int:
    half = (half ^ half >> 16) * 0x85EBCA6B & MASK
    half = (half ^ half >> 13) * 0xC2B2AE35 & MASK
    return half ^ half >> 16


def _rotated(number: int, bits: int) -> int:
    return (number << bits | number >> 32 - bits) & MASK

"""A reader of Thrift's compact protocol, in which Parquet keeps its footer and the headers of its pages. Pure.

Source: https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
"""

from __future__ import annotations

from typing import Any

DEEPEST = 32


class Compact:
    """A reader of Thrift's compact protocol. Raises IndexError at the end of the bytes, and ValueError for invalid
    bytes."""

    def __init__(self, content: bytes) -> None:
        self._content, self._at = content, 0

    def _byte(self) -> int:
        self._at += 1
        return self._content[self._at - 1]

    def _varint(self) -> int:
        value = shift = 0
        while (byte := self._byte()) & 0x80:
            value |= (byte & 0x7F) << shift
            shift += 7
        return value | byte << shift

    def _int(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)

    def struct(self, depth: int) -> dict[int, Any]:
        """Return the fields of a struct by their ids."""
        if depth > DEEPEST:
            raise ValueError("too deep")
        fields: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._int()
            fields[number] = self._value(head & 0x0F, depth, in_list=False)
        return fields

    def _value(self, kind: int, depth: int, in_list: bool) -> Any:
        if kind in (1, 2):
            return self._byte() == 1 if in_list else kind == 1
        if kind in (4, 5, 6):
            return self._int()
        if kind == 3:
            return self._byte()
        if kind == 7:
            return self._bytes(8)
        if kind == 8:
            return self._bytes(self._varint())
        if kind in (9, 10):
            return self._list(depth + 1)
        if kind == 12:
            return self.struct(depth + 1)
        raise ValueError(f"type {kind}")

    def _list(self, depth: int) -> list[Any]:
        head = self._byte()
        size = head >> 4 if head >> 4 < 15 else self._varint()
        if size > len(self._content) or depth > DEEPEST:
            raise ValueError("too long")
        return [self._value(head & 0x0F, depth, in_list=True) for _ in range(size)]

    def _bytes(self, size: int) -> bytes:
        if size > len(self._content) - self._at:
            raise IndexError("the end")
        self._at += size
        return self._content[self._at - size : self._at]

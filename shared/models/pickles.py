"""The imports of a pickle, read without loading the pickle. `torch.load(weights_only=True)` allows the imports of SAFE.

A file may hold several pickles, one after the other: what `torch.save` wrote before PyTorch 1.6 holds five, then raw
numbers. Every pickle of a file is read, because a loader may read each of them.
"""

from __future__ import annotations

import io
import pickletools
import re
from collections.abc import Iterator
from typing import IO

# The types that weights consist of, as in torch._weights_only_unpickler.
SAFE = re.compile(
    r"torch\._utils _rebuild_\w+|torch(\.storage)? \w*Storage|torch \w*(Size|device|dtype|float\w*|int\w*|bool)"
    r"|collections (OrderedDict|Counter)|torch\.nn\.parameter Parameter|torch\._tensor _rebuild_from_type_v2"
)
OLD_MAGIC = 0x1950A86A20F9469CFC6C  # torch/serialization.py: MAGIC_NUMBER
OLD_PICKLES = 5  # magic number, version, machine, the object, the names of its storages
PROTOCOL = b"\x80"  # the first byte of a pickle of protocol 2 and later
BOOKKEEPING = ("MEMOIZE", "BINPUT", "LONG_BINPUT", "PUT", "FRAME", "PROTO")


class NotAPickle(Exception):
    """The bytes, or the bytes after a pickle, are not a pickle. The message says where."""


def why_unsafe(data: bytes) -> str:
    """Return why loading these pickles may run code; '' for pickles of only tensors and plain values.

    Raises NotAPickle.
    """
    file, of_old_torch, count = io.BytesIO(data), False, 0
    while file.tell() < len(data):
        if of_old_torch and count == OLD_PICKLES:
            return ""  # the raw numbers of the storages
        pickle = _Pickle(file)
        try:
            unsafe = next((name for name in pickle.names() if not SAFE.fullmatch(name)), "")
        except (ValueError, IndexError, OverflowError) as exc:
            raise NotAPickle(f"not a pickle at byte {file.tell()}: {exc}") from exc
        if unsafe:
            return f"it calls {unsafe.replace(' ', '.')}"
        count += 1
        of_old_torch = of_old_torch or (count == 1 and pickle.value == OLD_MAGIC)
    return ""


class _Pickle:
    """One pickle of a file; `value` is the last pushed number or text."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.value: object = None

    def names(self) -> Iterator[str]:
        """`module name` of every import of the pickle; `? ?` for an import without a literal directly before it."""
        before: list[str | None] = []  # the texts that the last steps pushed; None for any other step
        for opcode, argument, _ in pickletools.genops(self._file):
            if opcode.name in BOOKKEEPING:
                continue
            if opcode.name == "STACK_GLOBAL":
                yield " ".join(text or "?" for text in before[-2:])
            elif opcode.name in ("GLOBAL", "INST", "EXT1", "EXT2", "EXT4"):
                yield str(argument)
            self.value = argument if argument is not None else self.value
            before = [*before[-1:], str(argument) if "UNICODE" in opcode.name else None]

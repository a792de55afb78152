"""Find model files that run code when they are loaded: pickles that import more than the parts of tensors.

torch.save writes a zip whose data.pkl names functions that rebuild tensors; `torch.load(weights_only=True)`, which
`predict` uses, accepts only those functions. This module applies the same rule to a pickle's imports without loading
the pickle.
"""

from __future__ import annotations

import io
import pickletools
import re
import zipfile
import zlib
from collections.abc import Iterator

from shared.kernel.places import OUTPUT_CONTAINER
from shared.kernel.storage import Blobs

PICKLED = (".pt", ".pth", ".bin", ".ckpt", ".pkl", ".pickle", ".joblib")
MOST_BYTES = 64 << 20  # per pickle; the pickle of a weights file only names its tensors
ENCRYPTED, USUAL = 0x1, (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# What zipfile raises for an archive that is truncated, altered, or of a later version.
BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, UnicodeDecodeError)
# The imports that weights need, from torch._weights_only_unpickler.
SAFE = re.compile(
    r"torch\._utils _rebuild_\w+|torch(\.storage)? \w*Storage|torch \w*(Size|device|dtype|float\w*|int\w*|bool)"
    r"|collections (OrderedDict|Counter)|torch\.nn\.parameter Parameter|torch\._tensor _rebuild_from_type_v2"
)


def why_unsafe(blobs: Blobs, name: str, size: int) -> str:
    """Return why loading this file may run code, '' if the file holds only data."""
    if not name.endswith(PICKLED):
        return ""
    file = io.BufferedReader(_BlobFile(blobs, name, size), 1 << 16)
    if not zipfile.is_zipfile(file):
        file.seek(0)
        return _why(file.read(MOST_BYTES + 1))
    try:
        with zipfile.ZipFile(file) as archive:
            return _why_archive(archive)
    except BROKEN as exc:
        return f"it can't be read ({exc})"


def _why_archive(archive: zipfile.ZipFile) -> str:
    pickles = [entry for entry in archive.infolist() if entry.filename.endswith((".pkl", ".pickle"))]
    if any("/code/" in f"/{entry}" for entry in archive.namelist()):
        return "it holds a program"  # TorchScript
    if any(entry.flag_bits & ENCRYPTED or entry.compress_type not in USUAL for entry in pickles):
        return "its pickle is encrypted, or compressed in an unusual way"
    if any(entry.file_size > MOST_BYTES for entry in pickles):
        return "its pickle is too large to be looked at"
    return next(filter(None, (_why(archive.read(entry)) for entry in pickles)), "")


def _why(data: bytes) -> str:
    if len(data) > MOST_BYTES:
        return "it is too large to be looked at"
    try:
        named = next((each for each in _names(data) if not SAFE.fullmatch(each)), "")
    except ValueError as exc:  # pickletools raises it for a file that is not a pickle
        return f"it can't be read ({exc})"
    return f"it calls {named.replace(' ', '.')}" if named else ""


def _names(data: bytes) -> Iterator[str]:
    """Yield `module name` for everything that the pickle imports; `? ?` where the name is not written literally."""
    before: list[str | None] = []  # the texts that the last opcodes pushed, None for any other opcode
    for opcode, argument, _ in pickletools.genops(data):
        if opcode.name in ("MEMOIZE", "BINPUT", "LONG_BINPUT", "PUT", "FRAME", "PROTO"):
            continue
        if opcode.name == "STACK_GLOBAL":
            yield " ".join(text or "?" for text in before[-2:])
        elif opcode.name in ("GLOBAL", "INST", "EXT1", "EXT2", "EXT4"):
            yield str(argument)
        before = [*before[-1:], argument if "UNICODE" in opcode.name else None]


class _BlobFile(io.RawIOBase):
    """A blob as a seekable file."""

    def __init__(self, blobs: Blobs, name: str, size: int) -> None:
        self._blobs, self._name, self._size, self._at = blobs, name, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        data = self._blobs.read_from(OUTPUT_CONTAINER, self._name, self._at, min(len(buffer), self._size - self._at))
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)

"""Find the files of a model that run code when they are loaded. The content decides, never the name.

Only content on one list is data: safetensors, ONNX, arrays of NumPy, pictures, text, pickles of tensors and plain
values (pickles.py), and zip archives of these. Every member of an archive is read, including archives in archives. All
other content is refused, because a loader may run it: programs of TorchScript, HDF5 with Lambda layers, compressed
pickles.
"""

from __future__ import annotations

import io
import json
import re
import struct
import zipfile
import zlib
from typing import IO

from shared.kernel.places import OUTPUT_CONTAINER
from shared.kernel.storage import Blobs
from shared.models import pickles

MOST_BYTES = 64 << 20  # of one pickle, text or header; pickles of weights name their tensors and hold none
READ_WHOLE = 4 << 20  # bytes of a file that one request reads
MOST_DEPTH = 3  # archives within archives
MOST_UNPACKED = 20 << 30  # bytes of all members, by the archive's own list
ENCRYPTED, USUAL = 0x1, (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
ZIP = b"PK\x03\x04"
# The errors that zipfile raises for an archive that is cut, altered, or of a later version.
BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, UnicodeDecodeError)
# Raw numbers beside the data.pkl of `torch.save`; its loader reads them only as numbers.
STORAGE = re.compile(
    r"(?:[^/]+/)?(?:data/\d+|\.data/serialization_id|\.format_version|\.storage_alignment|byteorder|version)"
)
PICTURES = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff")  # no pickle begins with these bytes
OTHER_PICTURES = (b"GIF87a", b"GIF89a", b"BM", b"II*\0", b"MM\0*", b"RIFF")  # a pickle may
COMPRESSED = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bzip2",
    b"\xfd7zXZ": "xz",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\x04\x22\x4d\x18": "lz4",
}
NUMPY = b"\x93NUMPY"
ONNX_FIELDS = frozenset({1, 2, 3, 4, 5, 6, 7, 8, 14, 20, 25, 26})  # of ModelProto, onnx/onnx.proto
ONNX_FIRST, ONNX_GRAPH = 8, 7  # the key of ir_version, with which files begin; the field of the graph


def why_unsafe(blobs: Blobs, name: str, size: int) -> str:
    """Return why loading this file of the output container may run code, '' if the file contains only data."""
    file = io.BufferedReader(_BlobFile(blobs, name, size), 1 << 16)
    return _why(io.BytesIO(file.read()) if size <= READ_WHOLE else file, size, 0)


def _why(file: IO[bytes], size: int, depth: int) -> str:
    start = file.read(512)
    file.seek(0)
    if not start:
        return ""
    if packed := next((kind for magic, kind in COMPRESSED.items() if start.startswith(magic)), ""):
        return f"it is compressed by {packed}, so its content is unknown"
    if start.startswith(ZIP):
        return _why_archive(file, depth)
    if zipfile.is_zipfile(file):  # a loader may read a picture or a pickle that is followed by an archive as either
        return "an archive is hidden behind other content"
    file.seek(0)
    return _why_plain(file, size, start)


def _why_plain(file: IO[bytes], size: int, start: bytes) -> str:
    if start.startswith(PICTURES):
        return ""
    if start.startswith(NUMPY):
        return _why_array(start)
    if _is_safetensors(file, size) or _is_onnx(file, size):
        return ""
    file.seek(0)
    data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        return "it is too large to read"
    try:
        return pickles.why_unsafe(data)
    except pickles.NotAPickle as exc:
        if start.startswith(pickles.PROTOCOL):
            return f"it can't be read ({exc})"
    return (
        ""
        if start.startswith(OTHER_PICTURES) or _is_text(data)
        else "its content is not of a kind that only contains data"
    )


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return b"\0" not in data


def _why_array(start: bytes) -> str:
    """Refuse an array of objects, which is a pickle:
    https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
    """
    length = int.from_bytes(start[8:10] if start[6] == 1 else start[8:12], "little")
    header = start[10 if start[6] == 1 else 12 :][:length].decode("latin-1")
    kind = re.search(r"'descr':\s*('[^']*'|\[)", header)
    return "" if kind and "O" not in kind[1] and kind[1] != "[" else "its array contains objects, which are a pickle"


def _why_archive(file: IO[bytes], depth: int) -> str:
    if depth == MOST_DEPTH:
        return f"it contains archives within archives, deeper than {MOST_DEPTH}"
    try:
        with zipfile.ZipFile(file) as archive:
            return _why_members(archive, depth)
    except BROKEN as exc:
        return f"it can't be read ({exc})"


def _why_members(archive: zipfile.ZipFile, depth: int) -> str:
    members = [entry for entry in archive.infolist() if not entry.is_dir()]
    if any("/code/" in f"/{entry.filename}" for entry in members):
        return "it contains a program"  # TorchScript
    if any(entry.flag_bits & ENCRYPTED or entry.compress_type not in USUAL for entry in members):
        return "a member is encrypted, or compressed in an unusual way"
    if sum(entry.file_size for entry in members) > MOST_UNPACKED:
        return "it is too large to read"
    if len({entry.filename for entry in members}) < len(members):
        return "two of its members have the same name"
    of_torch = any(entry.filename.rpartition("/")[2] == "data.pkl" for entry in members)
    for entry in members:
        if of_torch and STORAGE.fullmatch(entry.filename):
            continue
        with archive.open(entry) as member:
            if why := _why(member, entry.file_size, depth + 1):
                return why if entry.filename.endswith("data.pkl") else f"{entry.filename}: {why}"
    return ""


def _is_safetensors(file: IO[bytes], size: int) -> bool:
    """8 bytes with the length of a JSON object, the object, numbers: https://huggingface.co/docs/safetensors#format"""
    file.seek(0)
    head = file.read(9)
    if len(head) < 9 or head[8:] != b"{":
        return False
    (length,) = struct.unpack("<Q", head[:8])
    if not 2 <= length <= min(MOST_BYTES, size - 8):
        return False
    file.seek(8)
    try:
        tensors = json.loads(file.read(length))
    except (ValueError, RecursionError):
        return False
    ends = [each["data_offsets"][1] for name, each in tensors.items() if name != "__metadata__" and _has_offsets(each)]
    return len(ends) == len(tensors.keys() - {"__metadata__"}) and max(ends, default=0) == size - 8 - length


def _has_offsets(tensor: object) -> bool:
    offsets = tensor.get("data_offsets") if isinstance(tensor, dict) else None
    return isinstance(offsets, list) and len(offsets) == 2 and all(type(each) is int for each in offsets)


def _is_onnx(file: IO[bytes], size: int) -> bool:
    """Whether the file is a ModelProto with a graph, from the first byte to the last."""
    at, fields, read = 0, set(), _Varints(file)
    while at < size:
        file.seek(at)
        key = read()
        if key is None or (at == 0 and key != ONNX_FIRST) or (field := key >> 3) not in ONNX_FIELDS:
            return False
        value = read() if key & 7 in (0, 2) else None
        if value is None:
            return False
        at = file.tell() + (value if key & 7 == 2 else 0)
        fields.add(field)
    return at == size and {1, ONNX_GRAPH} <= fields


class _Varints:
    """Reads the whole numbers of a protobuf; None at the end of the file, or for a number of more than 64 bits."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def __call__(self) -> int | None:
        value = 0
        for shift in range(0, 70, 7):
            byte = self._file.read(1)
            if not byte:
                return None
            value |= (byte[0] & 0x7F) << shift
            if byte[0] < 0x80:
                return value
        return None


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

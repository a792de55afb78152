"""Facts from the header and the end of a picture: its format, size and mode, and whether the file is complete. Pure.

Sources: JPEG: ITU-T T.81, annex B. PNG: https://www.w3.org/TR/png-3/, section 5. GIF: GIF89a, sections 18 and 27. BMP:
BITMAPFILEHEADER. WebP: RFC 9649. TIFF: TIFF 6.0, section 2. PPM and PGM: http://netpbm.sourceforge.net/doc/.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace

EDGE = 1 << 16  # bytes of the header and of the end that a check reads
MOST_PIXELS = 178_956_970  # Pillow refuses more: twice Image.MAX_IMAGE_PIXELS
FORMATS = {  # the extensions of each format
    "JPEG": (".jpg", ".jpeg", ".jpe", ".jfif"),
    "PNG": (".png",),
    "GIF": (".gif",),
    "BMP": (".bmp", ".dib"),
    "WEBP": (".webp",),
    "TIFF": (".tif", ".tiff"),
    "PNM": (".ppm", ".pgm", ".pbm", ".pnm"),
}
EXTENSIONS = tuple(extension for extensions in FORMATS.values() for extension in extensions)
_PNG = b"\x89PNG\r\n\x1a\n"
MOST_UNPACKED = 64 << 20  # bytes of pixels that are unpacked of one picture
ANIMATED = " animated"  # after the mode
_CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
_PNG_MODES = {0: "L", 2: "RGB", 3: "P", 4: "LA", 6: "RGBA"}
_JPEG_MODES = {1: "L", 3: "RGB", 4: "CMYK"}
# The first bytes of other file types, for a message about a file that is not a picture.
_OTHERS = (
    (b"PK\x03\x04", "a zip archive"),
    (b"\x1f\x8b", "a gzip file"),
    (b"%PDF", "a PDF document"),
    (b"BZh", "a bzip2 file"),
    (b"Rar!", "a RAR archive"),
    (b"7z\xbc\xaf", "a 7z archive"),
    (b"version https://git-lfs", "a pointer of Git LFS"),
    (b"<", "a page of HTML or XML"),
    (b"{", "a JSON document"),
)


@dataclass(frozen=True)
class Picture:
    """The known facts about a picture. `broken` is the reason why the picture can't be decoded, '' if no problem is
    known.

    `pixels`: the pixels were checked, too.
    """

    format: str = ""
    mode: str = ""
    width: int = 0
    height: int = 0
    broken: str = ""
    pixels: bool = False


def inspect(head: bytes, tail: bytes, size: int) -> Picture:
    """Return the facts in the first and the last bytes of a picture of `size` bytes.

    `head` is the whole file if it has `size` bytes.
    """
    if not size:
        return Picture(broken="it is empty")
    if head.startswith(b"\xff\xd8"):
        return _jpeg(head, tail, size)
    if head.startswith(_PNG):
        return _png(head, tail, size)
    for signature, reader in _READERS.items():
        if head.startswith(signature):
            return reader(head, tail, size)
    return Picture(broken=f"it is not a picture but {what_is(head)}")


def what_is(head: bytes) -> str:
    """Return a description of a file with these first bytes."""
    if not head.strip(b"\0"):
        return "zero bytes" if head else "an empty file"
    start = head.lstrip()
    known = (words for begin, words in _OTHERS if start.startswith(begin))
    return next(known, "a file that begins with 0x" + head[:4].hex())


def _jpeg(head: bytes, tail: bytes, size: int) -> Picture:
    """Follow the segments to the frame header, and look for the end of the image in the last bytes."""
    at, picture, scan = 2, Picture("JPEG"), False
    while at + 4 <= len(head):
        if head[at] != 0xFF:
            return Picture("JPEG", broken=f"byte {at:,} is 0x{head[at]:02x}, where a segment should begin with 0xff")
        marker = head[at + 1]
        if marker == 0xFF:  # a fill byte
            at += 1
            continue
        if marker == 0xD9:
            return Picture("JPEG", broken="it ends before its pixels")
        if marker == 0x01 or 0xD0 <= marker <= 0xD8:
            at += 2
            continue
        (length,) = struct.unpack_from(">H", head, at + 2)
        if length < 2:
            return Picture("JPEG", broken=f"the segment at byte {at:,} has a length of {length}")
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC) and at + 10 <= len(head):
            height, width, components = struct.unpack_from(">HHB", head, at + 5)
            picture = Picture("JPEG", _JPEG_MODES.get(components, f"{components} components"), width, height)
        at += 2 + length
        if marker == 0xDA:
            scan = True
            break
    if not picture.width:
        known = "its size is further in than was read" if at >= len(head) and len(head) < size else "it has no size"
        return Picture("JPEG", broken="" if len(head) < size and at >= len(head) else f"{known}: its header is cut off")
    return _sized(picture, _jpeg_end(head[at:] if len(head) == size else b"", tail, scan or len(head) < size))


def _jpeg_end(scan: bytes, tail: bytes, has_scan: bool) -> str:
    """Return why a JPEG is incomplete, or ''. Many cameras write bytes after the end marker, so the end marker is
    searched for."""
    if not has_scan:
        return "it ends before its pixels"
    if b"\xff\xd9" not in (scan or tail):
        return "it is cut off: the mark of its end is missing"
    if scan and not scan.rfind(b"\xff\xd9"):
        return "it has no pixels"
    if scan and (marker := _stray_marker(scan[: scan.rfind(b"\xff\xd9")])):
        return f"its pixels are damaged: 0x{marker.hex()} can't be in them"
    if scan and (zeros := scan.find(bytes(4096))) >= 0 and not scan[zeros : scan.rfind(b"\xff\xd9")].strip(b"\0"):
        return "its second part is zero bytes"
    return ""


# In pixels, 0xff is followed by 0 or by the number of a restart (B.1.1.5). Between scans are tables and comments.
_STRAY = re.compile(rb"\xff+[^\x00\xff\xd0-\xd7\xc4\xd8-\xdd\xe0-\xef\xfe]")


def _stray_marker(scan: bytes) -> bytes:
    """Return the first marker that is not allowed after the first scan's header, or b"".

    Anything may follow the end marker, such as a camera's second picture.
    """
    found = _STRAY.search(scan)
    return found[0][-2:] if found and b"\xff\xd9" not in scan[: found.start()] else b""


def _png(head: bytes, tail: bytes, size: int) -> Picture:
    if len(head) < 33 or head[12:16] != b"IHDR":
        return Picture("PNG", broken="its header is cut off")
    width, height, depth, colour = struct.unpack_from(">IIBB", head, 16)
    mode = _PNG_MODES.get(colour, f"colour type {colour}")
    picture = Picture("PNG", f"{mode};16" if depth == 16 else mode, width, height)
    if zlib.crc32(head[12:29]) != struct.unpack_from(">I", head, 29)[0]:
        return Picture("PNG", picture.mode, width, height, "the check sum of its header is wrong")
    if colour not in _PNG_MODES:
        return Picture("PNG", picture.mode, width, height, f"it has the unknown colour type {colour}")
    if b"acTL" in head[33:4096].partition(b"IDAT")[0]:
        picture = replace(picture, mode=picture.mode + ANIMATED)
    if len(head) < size:
        return _sized(picture, "" if b"IEND\xaeB`\x82" in tail else _CUT)
    broken = _png_chunks(head) or _png_pixels(head, picture, depth, interlaced=head[28] != 0)
    return replace(_sized(picture, broken), pixels=not broken)


def _png_pixels(content: bytes, picture: Picture, depth: int, interlaced: bool) -> str:
    """Decompress the pixels of a whole PNG without decoding them; return the problem, or ''.

    Each row begins with its filter, 0 to 4 (section 9).
    """
    row = 1 + (picture.width * _CHANNELS[content[25]] * depth + 7) // 8
    need, found = picture.height * row, 0
    if need > MOST_UNPACKED:
        return ""
    try:
        for piece in _unpacked(content):
            if not interlaced and piece[-found % row :: row].translate(None, b"\0\1\2\3\4"):
                return "a row of its pixels has an unknown filter"
            found += len(piece)
            if found >= need:
                return ""
    except zlib.error as error:
        return f"its pixels can't be unpacked: {error}"
    return "" if interlaced else f"it has {found:,} of {need:,} bytes of pixels"


def _unpacked(content: bytes) -> Iterator[bytes]:
    """Yield the decompressed pixels of a PNG in pieces."""
    unpacker, at = zlib.decompressobj(), len(_PNG)
    while at + 12 <= len(content):
        length, kind = struct.unpack_from(">I4s", content, at)
        rest = content[at + 8 : at + 8 + length] if kind == b"IDAT" else b""
        while rest:
            yield unpacker.decompress(rest, EDGE)
            rest = unpacker.unconsumed_tail
        at += 12 + length
    yield unpacker.flush()


_CUT = "it is cut off: its last part is missing"


def _png_chunks(content: bytes) -> str:
    """Verify the checksum of each chunk of a whole PNG; return the reason why the PNG is broken, or ''."""
    at, pixels = len(_PNG), 0
    while at + 12 <= len(content):
        length, kind = struct.unpack_from(">I4s", content, at)
        end = at + 12 + length
        if end > len(content):
            return _CUT
        if zlib.crc32(content[at + 4 : end - 4]) != struct.unpack_from(">I", content, end - 4)[0]:
            return f"the check sum of its part {kind.decode('latin-1')!r} is wrong"
        pixels += length if kind == b"IDAT" else 0
        if kind == b"IEND":
            return "" if pixels else "it has no pixels"
        at = end
    return _CUT


def _gif(head: bytes, tail: bytes, _size: int) -> Picture:
    if len(head) < 13:
        return Picture("GIF", broken="its header is cut off")
    width, height = struct.unpack_from("<HH", head, 6)
    return _sized(
        Picture("GIF", "P", width, height), "" if (tail or head).rstrip(b"\0\r\n").endswith(b"\x3b") else _CUT
    )


def _bmp(head: bytes, _tail: bytes, size: int) -> Picture:
    if len(head) < 30:
        return Picture("BMP", broken="its header is cut off")
    said, _, _, pixels, header = struct.unpack_from("<IHHII", head, 2)
    if header == 12:
        width, height = struct.unpack_from("<HH", head, 18)
    else:
        width, height = struct.unpack_from("<ii", head, 18)
    cut = pixels >= size or (said > size and said - size > 2)
    return replace(_sized(Picture("BMP", "RGB", width, abs(height)), _CUT if cut else ""), pixels=not cut)


def _riff(head: bytes, _tail: bytes, size: int) -> Picture:
    if head[8:12] != b"WEBP" or len(head) < 30:
        return Picture(broken="its header is cut off" if len(head) < 30 else "it is not a picture but a RIFF file")
    (said,) = struct.unpack_from("<I", head, 4)
    width = height = 1  # the place of the sizes depends on the variant of WebP
    if head[12:16] == b"VP8X":
        width, height = (1 + int.from_bytes(head[at : at + 3], "little") for at in (24, 27))
    elif head[12:16] == b"VP8 ":
        width, height = (value & 0x3FFF for value in struct.unpack_from("<HH", head, 26))
    elif head[12:16] == b"VP8L":
        bits = int.from_bytes(head[21:25], "little")
        width, height = 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    moves = head[12:16] == b"VP8X" and head[20] & 2
    mode = f"RGB{ANIMATED}" if moves else "RGB"
    return _sized(Picture("WEBP", mode, width, height), _CUT if said + 8 > size else "")


def _tiff(head: bytes, _tail: bytes, size: int) -> Picture:
    order = "<" if head[:2] == b"II" else ">"
    offset = struct.unpack_from(f"{order}I", head, 4)[0] if len(head) >= 8 else size
    return Picture("TIFF", broken=_CUT if offset + 2 > size else "")


_PNM = re.compile(rb"P([1-6])(?:\s+|#[^\n]*\n)+(\d{1,9})(?:\s+|#[^\n]*\n)+(\d{1,9})(?:(?:\s+|#[^\n]*\n)+(\d{1,5}))?\s")


def _pnm(head: bytes, _tail: bytes, size: int) -> Picture:
    found = _PNM.match(head)
    if not found:
        return Picture("PNM", broken="its header is cut off")
    kind, width, height, most = (int(value or 1) for value in found.groups())
    picture = Picture("PNM", "RGB" if kind in (3, 6) else "L", width, height)
    if kind not in (5, 6):
        return _sized(picture, "")
    need = width * height * (3 if kind == 6 else 1) * (2 if most > 255 else 1)
    whole = size - found.end() >= need
    return replace(_sized(picture, "" if whole else _CUT), pixels=whole)


_READERS = {
    b"GIF87a": _gif, b"GIF89a": _gif, b"BM": _bmp, b"RIFF": _riff, b"II*\0": _tiff, b"MM\0*": _tiff,
    **{b"P%d" % kind: _pnm for kind in range(1, 7)},
}  # fmt: skip


def _sized(picture: Picture, broken: str) -> Picture:
    """Return the picture with the reason why it is broken: `broken`, or an impossible size."""
    if not broken and not (picture.width and picture.height):
        broken = f"it has a size of {picture.width} x {picture.height} pixels"
    if not broken and picture.width * picture.height > MOST_PIXELS:
        broken = f"it has {picture.width} x {picture.height} pixels, more than Pillow decodes"
    return Picture(picture.format, picture.mode, picture.width, picture.height, broken)


def fits(path: str, picture: Picture) -> bool:
    """Return whether the path's extension belongs to the picture's format."""
    return not picture.format or path.lower().endswith(FORMATS[picture.format])

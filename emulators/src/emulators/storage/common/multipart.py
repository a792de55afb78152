"""Multipart bodies that contain requests, as batches of tables and blobs send them.

https://learn.microsoft.com/rest/api/storageservices/performing-entity-group-transactions
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from http import HTTPStatus
from urllib.parse import urlsplit

from multidict import CIMultiDict

from emulators.storage.common.calls import Answer, Call, parse_query
from emulators.storage.common.errors import StorageError, invalid_input

BOUNDARY = re.compile(r'multipart/mixed\s*;.*?boundary="?([^";\r\n]+)"?', re.IGNORECASE)
PART_HEAD = "Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
BLANK_LINE = re.compile(rb"\r?\n\r?\n")


def parts(body: bytes, content_type: str) -> list[bytes]:
    match = BOUNDARY.match(content_type)
    if match is None:
        raise invalid_input(f"The content type is {content_type!r:.80}; multipart/mixed with a boundary is expected.")
    pieces = _pieces(b"\n" + body, b"\n--" + match[1].encode(errors="surrogateescape"))
    return [piece for piece in pieces if piece.strip()]


def _pieces(body: bytes, mark: bytes) -> list[bytes]:
    """Return the parts between the lines that consist of the mark, or of the mark and `--`.

    Each body has its own mark, and compiling a regular expression for each would take longer than everything else here.
    """
    first, *rest = body.split(mark)
    pieces = [first]
    for piece in rest:
        line, _, content = piece.partition(b"\n")
        if line.removeprefix(b"--").strip():  # a longer mark, or text that begins like the mark
            pieces[-1] += mark + piece
        else:
            pieces[-1] = pieces[-1].removesuffix(b"\r")
            pieces.append(content)
    return pieces


def split_part(part: bytes) -> tuple[bytes, bytes]:
    """Split a part into head and body. A part without a body may lack the empty line after its head."""
    pieces = BLANK_LINE.split(part.lstrip(b"\r\n"), maxsplit=1)
    return pieces[0], pieces[1] if len(pieces) > 1 else b""


def answered(one: Answer, headers: Mapping[str, str], head: str = PART_HEAD) -> str:
    """Return an answer as a part of a multipart body. These headers precede the answer's own."""
    lines = [f"HTTP/1.1 {one.status} {HTTPStatus(one.status).phrase}"]
    lines += [f"{name}: {value}" for name, value in {**headers, **one.headers}.items()]
    return head + "\r\n".join(lines) + "\r\n\r\n" + one.body.decode()


def operation(request: bytes, outer: Call) -> Call:
    """Return the request in a part of `outer`, at the same account."""
    head, body = split_part(request)
    line, _, rest = head.partition(b"\n")
    try:
        method, target, _ = line.decode().split()
        url = urlsplit(target)
    except ValueError:
        raise invalid_input(f"{line!r:.80} is not a request line.") from None
    path = f"/{outer.path[1:].partition('/')[0]}{url.path}" if outer.at_host else url.path
    query, headers = parse_query(url.query), headers_of(rest)
    return Call(method, path, query, headers, body.strip(), secure=outer.secure, at_host=outer.at_host)


def headers_of(text: bytes) -> CIMultiDict[str]:
    found = CIMultiDict[str]()
    try:
        for line in text.decode().splitlines():
            name, _, value = line.partition(":")
            found[name.strip()] = value.strip()
    except UnicodeDecodeError:
        raise StorageError(400, "InvalidHeaderValue", "The headers of an operation are not text.") from None
    return found

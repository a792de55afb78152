"""Batches on the wire: a multipart body with one change set, a transaction, or with one query; and the answer to it.

https://learn.microsoft.com/rest/api/storageservices/performing-entity-group-transactions
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from http import HTTPStatus
from urllib.parse import urlsplit

from multidict import CIMultiDict

from emulators.storage.calls import Answer, Call, parse_query
from emulators.storage.errors import StorageError, invalid_input

BOUNDARY = re.compile(r'multipart/mixed\s*;.*?boundary="?([^";\r\n]+)"?', re.IGNORECASE)
PART_HEAD = "Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"
CONTENT_TYPE = {"Content-Type": "multipart/mixed; boundary=batchresponse_1"}
BLANK_LINE = re.compile(rb"\r?\n\r?\n")


def operations(call: Call) -> Call | list[Call]:
    """The one query of a batch, or the requests of its change set. Raises StorageError, 400 InvalidInput, for a body
    that is neither."""
    outer = _parts(call.body, call.headers.get("Content-Type", ""))
    if len(outer) != 1:
        raise invalid_input("A batch is one change set, or one query.")
    head, inner = _split(outer[0])
    content_type = _headers(head).get("Content-Type", "")
    if content_type.strip().lower() == "application/http":
        query = _operation(inner)
        if query.method != "GET":
            raise invalid_input(f"{query.method} belongs into a change set; outside of one there is a GET alone.")
        return query
    return [_operation(_split(part)[1]) for part in _parts(inner, content_type)]


def answer_to_query(query: Call, one: Answer) -> Answer:
    body = f"--batchresponse_1\r\n{PART_HEAD}{_part(query, one)}\r\n--batchresponse_1--\r\n"
    return Answer(202, body.encode(), dict(CONTENT_TYPE))


def answer(answers: Iterable[tuple[Call | None, Answer]]) -> Answer:
    """The answer to a transaction: one part for each operation, or the only one of the operation that was refused."""
    parts = "".join(f"--changesetresponse_1\r\n{PART_HEAD}{_part(call, one)}\r\n" for call, one in answers)
    body = (
        "--batchresponse_1\r\nContent-Type: multipart/mixed; boundary=changesetresponse_1\r\n\r\n"
        f"{parts}--changesetresponse_1--\r\n--batchresponse_1--\r\n"
    )
    return Answer(202, body.encode(), dict(CONTENT_TYPE))


def _part(call: Call | None, one: Answer) -> str:
    headers = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-cache", "DataServiceVersion": "3.0;"}
    if call and (content_id := call.headers.get("Content-ID")):
        headers["Content-ID"] = content_id
    lines = [f"HTTP/1.1 {one.status} {HTTPStatus(one.status).phrase}"]
    lines += [f"{name}: {value}" for name, value in {**headers, **one.headers}.items()]
    return "\r\n".join(lines) + "\r\n\r\n" + one.body.decode()


def _parts(body: bytes, content_type: str) -> list[bytes]:
    match = BOUNDARY.match(content_type)
    if match is None:
        raise invalid_input(f"The content type is {content_type!r:.80}; multipart/mixed with a boundary is expected.")
    pieces = _pieces(b"\n" + body, b"\n--" + match[1].encode())
    return [piece for piece in pieces if piece.strip()]


def _pieces(body: bytes, mark: bytes) -> list[bytes]:
    """What stands between the lines that are nothing but the mark, or the mark and `--`.

    Each body has marks of its own, so a regular expression would be compiled for each: more than all else here.
    """
    first, *rest = body.split(mark)
    pieces = [first]
    for piece in rest:
        line, _, content = piece.partition(b"\n")
        if line.removeprefix(b"--").strip():  # a longer mark, or text that begins like it
            pieces[-1] += mark + piece
        else:
            pieces[-1] = pieces[-1].removesuffix(b"\r")
            pieces.append(content)
    return pieces


def _split(part: bytes) -> tuple[bytes, bytes]:
    """Head and body of a part. A part without a body may lack the empty line behind its head."""
    pieces = BLANK_LINE.split(part.lstrip(b"\r\n"), maxsplit=1)
    return pieces[0], pieces[1] if len(pieces) > 1 else b""


def _operation(request: bytes) -> Call:
    head, body = _split(request)
    line, _, rest = head.partition(b"\n")
    try:
        method, target, _ = line.decode().split()
    except ValueError:
        raise invalid_input(f"{line!r:.80} is no request line.") from None
    url = urlsplit(target)
    return Call(method, url.path, parse_query(url.query), _headers(rest), body.strip())


def _headers(text: bytes) -> CIMultiDict[str]:
    found = CIMultiDict[str]()
    try:
        for line in text.decode().splitlines():
            name, _, value = line.partition(":")
            found[name.strip()] = value.strip()
    except UnicodeDecodeError:
        raise StorageError(400, "InvalidHeaderValue", "The headers of an operation are not text.") from None
    return found

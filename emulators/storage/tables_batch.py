"""Entity group transactions on the wire: a multipart body with one change set, and the answer to it.

https://learn.microsoft.com/rest/api/storageservices/performing-entity-group-transactions
"""

from __future__ import annotations

from collections.abc import Iterable
from http import HTTPStatus

from emulators.storage.calls import Answer, Call
from emulators.storage.errors import invalid_input
from emulators.storage.multipart import PART_HEAD, headers_of, operation, parts, split_part


def operations(call: Call) -> list[Call]:
    """The requests inside of a transaction. Raises StorageError, 400 InvalidInput, for a body that is none."""
    outer = parts(call.body, call.headers.get("Content-Type", ""))
    if len(outer) != 1:
        raise invalid_input("A transaction is one change set.")
    head, inner = split_part(outer[0])
    return [operation(split_part(part)[1]) for part in parts(inner, headers_of(head).get("Content-Type", ""))]


def answer(answers: Iterable[tuple[Call | None, Answer]]) -> Answer:
    """The answer to a transaction: one part for each operation, or the only one of the operation that was refused."""
    done = "".join(f"--changesetresponse_1\r\n{PART_HEAD}{_part(call, one)}\r\n" for call, one in answers)
    body = (
        "--batchresponse_1\r\nContent-Type: multipart/mixed; boundary=changesetresponse_1\r\n\r\n"
        f"{done}--changesetresponse_1--\r\n--batchresponse_1--\r\n"
    )
    return Answer(202, body.encode(), {"Content-Type": "multipart/mixed; boundary=batchresponse_1"})


def _part(call: Call | None, one: Answer) -> str:
    headers = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-cache", "DataServiceVersion": "3.0;"}
    if call and (content_id := call.headers.get("Content-ID")):
        headers["Content-ID"] = content_id
    lines = [f"HTTP/1.1 {one.status} {HTTPStatus(one.status).phrase}"]
    lines += [f"{name}: {value}" for name, value in {**headers, **one.headers}.items()]
    return "\r\n".join(lines) + "\r\n\r\n" + one.body.decode()

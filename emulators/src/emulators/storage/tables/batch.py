"""Batches as multipart bodies: a body has one change set, which is a transaction, or one query. Their answers.

https://learn.microsoft.com/rest/api/storageservices/performing-entity-group-transactions
"""

from __future__ import annotations

from collections.abc import Iterable

from emulators.storage.common.calls import Answer, Call
from emulators.storage.common.errors import invalid_input
from emulators.storage.common.multipart import answered, headers_of, operation, parts, split_part

CONTENT_TYPE = {"Content-Type": "multipart/mixed; boundary=batchresponse_1"}


def operations(call: Call) -> Call | list[Call]:
    """Return the one query of a batch, or the requests of its change set. Raises StorageError, 400 InvalidInput,
    for a body that is neither."""
    outer = parts(call.body, call.headers.get("Content-Type", ""))
    if len(outer) != 1:
        raise invalid_input("A batch is one change set, or one query.")
    head, inner = split_part(outer[0])
    content_type = headers_of(head).get("Content-Type", "")
    if content_type.strip().lower() == "application/http":
        query = operation(inner, call)
        if query.method != "GET":
            raise invalid_input(f"{query.method} belongs into a change set; outside of one there is a GET alone.")
        return query
    return [operation(split_part(part)[1], call) for part in parts(inner, content_type)]


def answer_to_query(query: Call, one: Answer) -> Answer:
    body = f"--batchresponse_1\r\n{_part(query, one)}\r\n--batchresponse_1--\r\n"
    return Answer(202, body.encode(), dict(CONTENT_TYPE))


def answer(answers: Iterable[tuple[Call | None, Answer]]) -> Answer:
    """Return the answer to a transaction: one part for each operation, or only the part of the operation that
    failed."""
    done = "".join(f"--changesetresponse_1\r\n{_part(call, one)}\r\n" for call, one in answers)
    body = (
        "--batchresponse_1\r\nContent-Type: multipart/mixed; boundary=changesetresponse_1\r\n\r\n"
        f"{done}--changesetresponse_1--\r\n--batchresponse_1--\r\n"
    )
    return Answer(202, body.encode(), dict(CONTENT_TYPE))


def _part(call: Call | None, one: Answer) -> str:
    headers = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-cache", "DataServiceVersion": "3.0;"}
    if call and (content_id := call.headers.get("Content-ID")):
        headers["Content-ID"] = content_id
    return answered(one, headers)

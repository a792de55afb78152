"""Blob batches: one request with many deletions or tier changes, each with its own signature and its own answer.

https://learn.microsoft.com/rest/api/storageservices/blob-batch
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable

from emulators.storage.common.calls import VERSION, Answer, Call
from emulators.storage.common.errors import StorageError, invalid_input
from emulators.storage.common.multipart import PART_HEAD, answered, headers_of, operation, parts, split_part

MOST = 256
ALLOWED = {("DELETE", ""), ("PUT", "tier")}


async def answer(
    call: Call, ask: Callable[[Call], Awaitable[Answer]], failure: Callable[[StorageError, str], Answer]
) -> Answer:
    """Process the parts in their order. A part that fails does not stop the next part."""
    found = [split_part(part) for part in parts(call.body, call.headers.get("Content-Type", ""))]
    if not 1 <= len(found) <= MOST:
        raise invalid_input(f"A batch has 1 to {MOST} requests; this has {len(found)}.")
    boundary, answers = f"batchresponse_{uuid.uuid4()}", []
    for number, (head, inner) in enumerate(found):
        content_id = headers_of(head).get("Content-ID", str(number))
        answers.append(_part(content_id, await _one(operation(inner, call), call.resource, ask, failure)))
    body = "".join(f"--{boundary}\r\n{one}\r\n" for one in answers) + f"--{boundary}--\r\n"
    return Answer(202, body.encode(), {"Content-Type": f"multipart/mixed; boundary={boundary}"})


async def _one(
    call: Call, container: str, ask: Callable[[Call], Awaitable[Answer]], failure: Callable[[StorageError, str], Answer]
) -> Answer:
    try:
        if (call.method, call.text("comp")) not in ALLOWED or "restype" in call.query:
            raise invalid_input(f"A batch may not hold {call.method} {call.text('restype')} {call.text('comp')}.")
        if container and call.resource.partition("/")[0] != container:
            raise invalid_input(f"This batch is of the container {container} alone.")
        return await ask(call)
    except StorageError as error:
        answered = failure(error, "")
        return Answer(answered.status, answered.body, {**answered.headers, "x-ms-error-code": error.code})


def _part(content_id: str, one: Answer) -> str:
    head = PART_HEAD.replace("\r\n\r\n", f"\r\nContent-ID: {content_id}\r\n\r\n")
    own = {"x-ms-version": VERSION, "x-ms-request-id": str(uuid.uuid4()), "Content-Length": str(len(one.body))}
    return answered(one, own, head)

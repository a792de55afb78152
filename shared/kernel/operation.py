"""An operation of the HTTP API: one method of one path, who may call it, and the function that answers it.

A feature declares its operations in a Group, in its own folder; shared/api/registry.py names the groups. Everything
else that mentions an operation is made from the declaration: its Azure function, access control, the OpenAPI document,
docs/api.md, the roles in docs/security.md and the schemas of the command line.

The answering function stands in `module` under the operation's name. It is imported with the first call, so a cold
start reads declarations alone. Its signature declares the rest. A parameter gets what its name says:

    ports, post, schedules, removals, studies   where things are kept: the system, and the stores beside it
    a {name} of the path                        that part of the path, as text
    query, body                                 the query or the JSON body, read as the parameter's type; a body with a
                                                default may be left out
    by, caller                                  who calls: a Person, or a Caller with what they may do
    key                                         the Idempotency-Key, None without one
    range_header                                the header Range, None without one
    admit_code                                  a call that raises 403 unless the caller may run code of their own

The return type is Annotated[Json, Answer], where Answer is the type that describes the JSON, or Annotated[Reply,
{status: Answer, ...}] for an operation with several statuses or with headers; None stands for an answer without JSON.
"""

from __future__ import annotations

from typing import NamedTuple

READER, CONTRIBUTOR, CODER = "trainyard.reader", "trainyard.contributor", "trainyard.coder"
ROLES = (READER, CONTRIBUTOR, CODER)  # each has the rights of those before it
ANYONE = ""  # no role, no key


class Operation(NamedTuple):
    """`name` is the Azure function's, which stays: the host keeps what it knows of a function under it."""

    name: str
    method: str
    path: str  # below /api/; {*path} takes slashes too
    module: str  # of the answering function, which has the name of the operation
    summary: str  # one line of plain text
    details: str = ""  # Markdown for docs/api.md: what a caller gives and gets
    status: int = 200  # of an answer that is no Reply
    problems: tuple[int, ...] = ()  # besides those that every operation may answer
    needs: str | None = None  # a role, or ANYONE; None: reader for a GET, else contributor
    code: str = ""  # which of its requests need the role coder as well
    no_key: str = ""  # why each call does something more, so that an Idempotency-Key is refused
    own_threads: bool = False  # answered while every other thread waits for a slow service

    @property
    def role(self) -> str:
        if self.needs is None:
            return READER if self.method == "GET" else CONTRIBUTOR
        return self.needs


class Group(NamedTuple):
    """The operations of one feature, as one part of docs/api.md. `title` and `about` are Markdown."""

    title: str
    operations: tuple[Operation, ...]
    about: str = ""

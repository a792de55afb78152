"""An operation of the HTTP API: one method of one path, the callers' role, and the answering function.

A feature declares its operations in a Group, in its own folder; shared/api/registry.py names the groups. Everything
else that mentions an operation is generated from the declaration: its Azure function, access control, the OpenAPI
document, docs/api.md, the roles in docs/security.md and the schemas of the command line.

The answering function has the operation's name and stands in `module`. The first call imports it, so a cold start reads
only declarations. Its signature declares the rest. The name of a parameter decides what it receives:

    ports, post, schedules, removals   the System, and the stores beside it
    a {name} of the path                        that part of the path, as text
    query, body                                 the query or the JSON body, converted to the parameter's type; a body
                                                with a default is optional
    by, caller                                  the caller: as a Person, or as a Caller with the caller's rights
    key                                         the Idempotency-Key, or None
    range_header                                the Range header, or None
    admit_code                                  a function that raises 403 unless the caller may run their own code
    headers                                     the headers, with names in lower case; 403 for a page of another site
    call                                        a function that calls another operation for the same caller

The return type is Annotated[Json, Answer], where Answer is the type that describes the JSON. An operation with several
statuses or with headers returns Annotated[Reply, {status: Answer, ...}]; None stands for an answer without JSON.
"""

from __future__ import annotations

from typing import NamedTuple

READER, CONTRIBUTOR, CODER = "trainyard.reader", "trainyard.contributor", "trainyard.coder"
ROLES = (READER, CONTRIBUTOR, CODER)  # each role includes the rights of the roles before it
ANYONE = ""  # no role, no key


class Operation(NamedTuple):
    """`name` is also the name of the Azure function, and never changes, because the host keeps the function's state
    under this name.
    """

    name: str
    method: str
    path: str  # below /api/; {*path} also matches slashes
    module: str  # of the answering function, which has the operation's name
    summary: str  # one line of plain text
    details: str = ""  # Markdown for docs/api.md: what the operation takes and returns
    status: int = 200  # of an answer that is not a Reply
    problems: tuple[int, ...] = ()  # statuses besides those of every operation
    needs: str | None = None  # a role, or ANYONE; None: reader for a GET, else contributor
    code: str = ""  # which of its requests also need the role coder
    no_key: str = ""  # why each call has a new effect, so that an Idempotency-Key is refused
    own_threads: bool = False  # has its own threads, so it answers while all others wait for a slow service

    @property
    def role(self) -> str:
        if self.needs is None:
            return READER if self.method == "GET" else CONTRIBUTOR
        return self.needs


class OperationGroup(NamedTuple):
    """The operations of one feature, as one section of docs/api.md. `title` and `about` are Markdown."""

    title: str
    operations: tuple[Operation, ...]
    about: str = ""

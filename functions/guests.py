"""Guests over HTTP: sign in with a bearer token, and find the operation that a path below /api/granted/ names.

The host requires no key for these paths, because a guest has none. The rest of such a path is a path of the API, so the
same function answers guests and people.
"""

from __future__ import annotations

import re
from functools import cache

import azure.functions as func

from functions import access
from shared import bootstrap
from shared.api.registry import OPERATIONS
from shared.kernel.errors import NotFound, Unknown
from shared.kernel.guest import Guest
from shared.kernel.operation import Operation
from shared.runs.features import guest_of


def sign_in(req: func.HttpRequest) -> Guest:
    """Return the guest behind the request's bearer token. Raises Denied or Unknown."""
    guest = guest_of(bootstrap.system(), access.token(req))
    if guest is None:
        raise Unknown("This is not a token of a grant. Such a token begins with tg_.")
    return guest


def operation_of(req: func.HttpRequest) -> tuple[Operation, func.HttpRequest]:
    """Return the operation of the path below granted/, and the request as the operation's own function receives it.

    Raises NotFound for a path without an operation.
    """
    path = req.route_params.get("path", "")
    for operation, pattern in _patterns():
        if operation.method == req.method and (match := pattern.fullmatch(path)):
            its = func.HttpRequest(
                req.method, req.url, headers=req.headers, params=req.params, route_params=match.groupdict(),
                body=req.get_body(),
            )  # fmt: skip
            return operation, its
    raise NotFound(f"There is no operation {req.method} {path[:120]!r}.")


@cache
def _patterns() -> tuple[tuple[Operation, re.Pattern[str]], ...]:
    return tuple((operation, re.compile(_pattern(operation.path))) for operation in OPERATIONS)


def _pattern(path: str) -> str:
    """Return the regular expression of a path: {name} matches one segment, and {*name} the rest."""
    parts = (
        f"(?P<{part.strip('{*}')}>{'.+' if '*' in part else '[^/]+'})" if part.startswith("{") else re.escape(part)
        for part in path.split("/")
    )
    return "/".join(parts)

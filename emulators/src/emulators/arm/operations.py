"""The permissions that requests need: requests to Azure Storage and to an Azure ML workspace as RBAC actions.

Source: learn.microsoft.com/rest/api/storageservices/authorize-with-azure-active-directory, the tables of permissions.
For the control plane, the rule of all of ARM: the action is the resource type with read, write, delete or NAME/action.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qs, unquote, urlsplit

ACCOUNT = "Microsoft.Storage/storageAccounts"
CONTAINER, BLOB = f"{ACCOUNT}/blobServices/containers", f"{ACCOUNT}/blobServices/containers/blobs"
QUEUE, MESSAGE = f"{ACCOUNT}/queueServices/queues", f"{ACCOUNT}/queueServices/queues/messages"
TABLE, ENTITY = f"{ACCOUNT}/tableServices/tables", f"{ACCOUNT}/tableServices/tables/entities"
VERBS = {"GET": "read", "HEAD": "read", "PUT": "write", "PATCH": "write", "DELETE": "delete"}
PART = re.compile(r"^(POST|PUT|PATCH|MERGE|DELETE|GET) (\S+) HTTP/1\.1\r?$(.*?)(?=^--|\Z)", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Request:
    """A request as the client sent it. `path` is below the account, percent-encoded, with the query."""

    service: str  # blob, queue, table
    method: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict, hash=False)  # names in lower case
    body: str = ""


@dataclass(frozen=True)
class Need:
    """One required permission: any of these sets of actions, on the resource `target` below the account's id."""

    any_of: tuple[tuple[str, ...], ...]
    target: str


class UnknownOperation(ValueError):
    """A request that these tables do not contain."""


def needs(request: Request) -> list[Need]:
    """Return the required permissions of a storage request. Raises UnknownOperation."""
    url = urlsplit(request.path)
    names = [unquote(name) for name in url.path.strip("/").split("/") if name]
    query = {key.lower(): values[0].lower() for key, values in parse_qs(url.query, keep_blank_values=True).items()}
    of = {"blob": _blob, "queue": _queue, "table": _table}[request.service]
    return list(of(request, names, query))


def workspace_action(method: str, path: str) -> tuple[str, str]:
    """Return the action of a control plane request, and the id of its resource. Azure Monitor's metrics are a
    resource below the workspace, and the last provider in the path determines the action."""
    resource = path.rstrip("/")
    below = re.split("/providers/", resource, flags=re.IGNORECASE)[-1].split("/")
    provider, rest = below[0], below[1:]
    kinds = rest[0::2]
    about = resource.rpartition("/")[0] if len(rest) % 2 else resource  # a collection, or a POST's last word
    return f"{provider}/{'/'.join(kinds)}/{VERBS.get(method, 'action')}", about


def _one(target: str, *any_of: str) -> Need:
    return Need(tuple((action,) for action in any_of), target)


def _blob(request: Request, names: list[str], query: dict[str, str]) -> Iterator[Need]:
    comp, method = query.get("comp", ""), request.method
    if not names:
        if comp == "userdelegationkey":
            yield _one("", f"{ACCOUNT}/blobServices/generateUserDelegationKey/action")
        elif comp == "list":
            yield _one("", f"{CONTAINER}/read")
        else:
            yield _one("", f"{ACCOUNT}/blobServices/{VERBS[method]}")
        return
    place = f"/blobServices/default/containers/{names[0]}"
    if query.get("restype") == "container":
        listing = comp == "list" and method == "GET"
        yield _one(place, f"{BLOB}/read" if listing else f"{CONTAINER}/{VERBS[method]}")
        return
    if len(names) < 2:
        raise UnknownOperation(f"{method} {request.path}")
    yield _one(place, f"{BLOB}/{VERBS[method]}")
    if source := request.headers.get("x-ms-copy-source"):
        container = unquote(urlsplit(source).path.strip("/").split("/")[1])
        yield _one(f"/blobServices/default/containers/{container}", f"{BLOB}/read")


def _queue(request: Request, names: list[str], query: dict[str, str]) -> Iterator[Need]:
    method = request.method
    if not names:
        yield _one("", f"{QUEUE}/read" if query.get("comp") == "list" else f"{ACCOUNT}/queueServices/{VERBS[method]}")
        return
    place = f"/queueServices/default/queues/{names[0]}"
    if len(names) == 1:
        yield _one(place, f"{QUEUE}/{VERBS[method]}")
    elif method == "POST":
        yield _one(place, f"{MESSAGE}/add/action", f"{MESSAGE}/write")
    elif method == "GET" and query.get("peekonly") == "true":
        yield _one(place, f"{MESSAGE}/read")
    elif method == "GET":
        yield Need(((f"{MESSAGE}/process/action",), (f"{MESSAGE}/delete", f"{MESSAGE}/read")), place)
    elif method == "DELETE" and len(names) == 3:
        yield _one(place, f"{MESSAGE}/process/action", f"{MESSAGE}/delete")
    else:
        yield _one(place, f"{MESSAGE}/{VERBS[method]}")


def _table(request: Request, names: list[str], _: dict[str, str]) -> Iterator[Need]:
    method, name = request.method, names[0] if names else ""
    if not name:
        yield _one("", f"{ACCOUNT}/tableServices/{VERBS[method]}")
    elif name == "$batch":
        for verb, address, rest in PART.findall(request.body):
            inner = urlsplit(address).path.strip("/").partition("/")[2]  # without the account
            headers = {"if-match": "*"} if "if-match:" in rest.lower() else {}
            yield from needs(Request("table", verb, f"/{inner}", headers))
    elif name.partition("(")[0] == "Tables":
        yield _one("", f"{TABLE}/{'write' if method == 'POST' else VERBS[method]}")
    else:
        yield _entity(request, f"/tableServices/default/tables/{name.partition('(')[0]}")


def _entity(request: Request, place: str) -> Need:
    method, conditional = request.method, "if-match" in request.headers
    if method == "POST":
        return _one(place, f"{ENTITY}/add/action", f"{ENTITY}/write")
    if method in ("PUT", "PATCH", "MERGE"):
        update = f"{ENTITY}/update/action"
        return Need(((f"{ENTITY}/write",), (update,) if conditional else (f"{ENTITY}/add/action", update)), place)
    return _one(place, f"{ENTITY}/{VERBS[method]}")

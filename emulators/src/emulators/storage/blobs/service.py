"""The blob service's REST interface: how requests map to operations.

https://learn.microsoft.com/rest/api/storageservices/blob-service-rest-api
"""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from inspect import isawaitable
from typing import Any, ClassVar, TextIO
from urllib.parse import quote, unquote, urlencode

from emulators.storage.blobs import batch
from emulators.storage.blobs.access import BlobAccount, split
from emulators.storage.blobs.blocks import BlockOperations
from emulators.storage.blobs.containers import ContainerOperations
from emulators.storage.blobs.copies import SOURCE, CopyOperations
from emulators.storage.blobs.headers import OCTETS
from emulators.storage.blobs.leasing import LeaseOperations
from emulators.storage.blobs.model import REHYDRATION_SECONDS
from emulators.storage.blobs.operations import DELETE_SNAPSHOTS, BlobOperations
from emulators.storage.blobs.pages import COMPARED, PageOperations
from emulators.storage.blobs.requests import Requests, not_here
from emulators.storage.blobs.search import SearchOperations
from emulators.storage.blobs.store import Blobs
from emulators.storage.common.calls import Answer, Call
from emulators.storage.common.errors import StorageError, bad_parameter, not_served
from emulators.storage.common.service import PROPERTIES, Service
from emulators.storage.common.service_xml import parsed

LONG_BODIES = ("", "block", "appendblock", "page")  # operations of PUT whose bodies are a blob's bytes
NOT_HERE = {
    "incrementalcopy": "incremental copies of page blobs",
    "query": "queries of a blob's content",
    "legalhold": "legal holds",
    "immutabilityPolicies": "immutability policies",
}
HEADERS_NOT_HERE = {
    "x-ms-structured-body": "framed bodies",
    "x-ms-immutability-policy-until-date": "immutability policies",
    "x-ms-legal-hold": "legal holds",
}
DATA_LAKE = (
    "This emulator has no Data Lake endpoint (dfs, with directories and renames): use a client of the Blob endpoint, "
    "such as azure-storage-blob or adlfs."
)
PARTS = (
    *("appendblock", "block", "blocklist", "copy", "lease", "metadata", "page", "pagelist", "properties", "seal"),
    *("snapshot", "tags", "tier", "undelete"),
)
WITHOUT_BODY = ("GET ", "GET metadata", "GET acl")
SECRET = "sig"
# Method, `comp` and status of the requests in the journal, for which Event Grid has events.
TOLD = {
    *(("PUT", "", 201), ("PUT", "", 202), ("PUT", "blocklist", 201), ("PUT", "tier", 200), ("PUT", "tier", 202)),
    ("DELETE", "", 202),
}
# The conditional headers that an operation checks. Any other condition is refused.
NONE: frozenset[str] = frozenset()
_ETAGS_AND_TIMES = ("If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since")
OF_VERSION = frozenset(_ETAGS_AND_TIMES)
OF_BLOB = OF_VERSION | {"x-ms-if-tags"}
OF_SOURCE = frozenset(f"x-ms-source-{name}" for name in (*_ETAGS_AND_TIMES, "if-tags"))
OF_TAGS = frozenset(f"x-ms-blob-{name}" for name in _ETAGS_AND_TIMES)
OF_TIER = frozenset({"x-ms-access-tier-if-modified-since", "x-ms-access-tier-if-unmodified-since"})
OF_PAGES = OF_BLOB | COMPARED.keys()
ALL_CONDITIONS = OF_PAGES | OF_SOURCE | OF_TIER | OF_TAGS
Operation = Callable[[Call], Awaitable[Answer]]
Table = dict[str, tuple[Operation, frozenset[str]]]


def _wrapped(operation: Callable[[Call], Any]) -> Operation:
    async def wrapped(call: Call) -> Answer:
        found = operation(call)
        answer: Answer = await found if isawaitable(found) else found
        return answer

    return wrapped


def _table(*rows: tuple[str, Callable[[Call], Any], frozenset[str]]) -> Table:
    """Return the table of operations, by method and `comp`. HEAD is added for each GET that can be answered without
    a body."""
    found = {key: (_wrapped(operation), conditions) for key, operation, conditions in rows}
    heads = {key.replace("GET ", "HEAD ", 1): row for key, row in found.items() if key in WITHOUT_BODY}
    return {**heads, **found}


class BlobService(Service[BlobAccount]):
    """Answers requests to the blobs of one account. A request that is not allowed raises StorageError."""

    largest_body: ClassVar[int] = 8 * 1024 * 1024  # of XML; a blob's bytes are streamed
    backslashes: ClassVar[bool] = False

    def __init__(
        self,
        blobs: Blobs,
        account: BlobAccount,
        endpoint: str = "",
        journal: TextIO | None = None,
        web_sources: bool = False,
    ) -> None:
        super().__init__(account, blobs.settings, endpoint)
        self.account = replace(self.account, public=self._public)
        self._blobs = blobs
        self._configured(self._settings.get(PROPERTIES))
        self._requests = Requests(blobs, self.account, web_sources)
        self._journal = journal
        self._returning: deque[tuple[float, Call]] = deque()  # rehydrating blobs, in the order of their times
        blob = BlobOperations(self._requests)
        blocks = BlockOperations(self._requests, blob)
        pages = PageOperations(self._requests)
        self._copies = CopyOperations(self._requests, blob, blocks, pages)
        leases, search = LeaseOperations(self._requests), SearchOperations(self._requests)
        containers = ContainerOperations(self._requests)
        self._of_account = _table(
            ("GET list", lambda call: containers.all_listed(call, self.endpoint), NONE),
            ("GET blobs", lambda call: search.of_all(call, self.endpoint), NONE),
        )
        self._of_containers = self._container_operations(containers, leases, search)
        self._of_blobs = self._blob_operations(blob, blocks, leases) | self._page_operations(pages)

    def _container_operations(
        self, containers: ContainerOperations, leases: LeaseOperations, search: SearchOperations
    ) -> Table:
        return _table(
            ("PUT ", containers.create, NONE),
            ("DELETE ", containers.delete, OF_VERSION),
            ("GET ", containers.properties, NONE),
            ("GET metadata", containers.properties, NONE),
            ("PUT metadata", containers.set_metadata, OF_VERSION),
            ("GET acl", containers.policies, NONE),
            ("PUT acl", containers.set_policies, OF_VERSION),
            ("GET list", lambda call: containers.listed(call, self.endpoint), NONE),
            ("GET blobs", lambda call: search.of_container(call, self.endpoint), NONE),
            ("PUT lease", leases.of_container, OF_VERSION),
        )

    def _blob_operations(self, blob: BlobOperations, blocks: BlockOperations, leases: LeaseOperations) -> Table:
        copies = self._copies
        return _table(
            ("PUT ", blob.put, OF_BLOB),
            ("PUT  from", self._put, OF_BLOB | OF_SOURCE),
            ("GET ", blob.get, OF_BLOB),
            ("HEAD ", blob.head, OF_BLOB),
            ("DELETE ", blob.delete, OF_BLOB | OF_TIER),
            ("PUT block", blocks.put_block, NONE),
            ("PUT block from", copies.put_block_from_url, OF_SOURCE),
            ("PUT blocklist", blocks.commit, OF_BLOB),
            ("GET blocklist", blocks.block_list, OF_BLOB),
            ("PUT appendblock", blocks.append, OF_BLOB),
            ("PUT appendblock from", copies.append_from_url, OF_BLOB | OF_SOURCE),
            ("PUT seal", blocks.seal, OF_BLOB),
            ("GET metadata", blob.metadata, OF_BLOB),
            ("PUT metadata", blob.set_metadata, OF_BLOB),
            ("PUT properties", blob.set_properties, OF_BLOB),
            ("PUT tier", blob.set_tier, OF_BLOB),
            ("GET tags", blob.tags, OF_BLOB | OF_TAGS),
            ("PUT tags", blob.set_tags, OF_BLOB | OF_TAGS),
            ("PUT snapshot", blob.snapshot, OF_BLOB),
            ("PUT undelete", blob.undelete, NONE),
            ("PUT lease", leases.of_blob, OF_BLOB),
            ("PUT copy", copies.abort, OF_BLOB),
        )

    def _page_operations(self, pages: PageOperations) -> Table:
        return _table(
            ("PUT page", pages.put, OF_PAGES),
            ("PUT page from", self._copies.put_pages_from_url, OF_PAGES | OF_SOURCE),
            ("GET pagelist", pages.ranges, OF_BLOB),
        )

    def streams(self, method: str, query: Mapping[str, str]) -> bool:
        return method == "PUT" and "restype" not in query and query.get("comp", "") in LONG_BODIES

    def purge(self) -> bool:
        self._log_rehydrated()
        return self._blobs.purge()

    async def _answered(self, call: Call) -> Answer:
        before = self._facts(call) if self._journal and call.method == "DELETE" and call.resource else ""
        try:
            found = await self._routed(call)
        except StorageError as error:
            self._log_access(call, error.status, before)
            raise
        self._log_access(call, found.status, before)
        return found

    async def _routed(self, call: Call) -> Answer:
        if (what := NOT_HERE.get(call.text("comp"))) is not None:
            raise not_here(what)
        if call.query.keys() & {"resource", "action"} or "x-ms-rename-source" in call.headers:
            raise StorageError(501, "FeatureNotSupported", DATA_LAKE)
        for header, what in HEADERS_NOT_HERE.items():
            if header in call.headers:
                raise not_here(what)
        container, _, name = call.resource.partition("/")
        if call.text("restype") == "account":
            return self._account_facts(call)
        if call.method == "POST" and call.text("comp") == "batch" and not name:
            self.account.admit_any(call)
            return await batch.answer(call, self._answered, self.failure)
        return await self._operation(call, container, name)(call)

    def _operation(self, call: Call, container: str, name: str) -> Operation:
        """Return the operation of a request. Raises StorageError, 405 for an unknown operation, and 400 for a
        condition that the operation does not support."""
        comp = call.text("comp")
        if not container:
            key = f"{call.method} {comp}"
            operations = self._of_account if "restype" not in call.query else {key: (_wrapped(self._of_service), NONE)}
        elif not name and call.text("restype") == "container":
            key, operations = f"{call.method} {comp}", self._of_containers
        else:
            key = f"{call.method} {comp}{' from' if SOURCE in call.headers else ''}"
            operations = self._of_blobs
            if comp not in ("", *PARTS):
                raise bad_parameter("comp", comp, f"It is one of {', '.join(PARTS)}.")
        if key not in operations:
            raise not_served(call.method, call.path)
        operation, conditions = operations[key]
        if unknown := [header for header in ALL_CONDITIONS - conditions if header in call.headers]:
            sentence = "Condition headers are not supported for this operation."
            raise StorageError(400, "ConditionHeadersNotSupported", f"{sentence} {', '.join(sorted(unknown))}")
        return operation

    def _account_facts(self, call: Call) -> Answer:
        self.account.admit_any(call)
        facts = {"x-ms-sku-name": "Standard_RAGRS", "x-ms-account-kind": "StorageV2", "x-ms-is-hns-enabled": "false"}
        return Answer(200, headers=facts)

    async def _put(self, call: Call) -> Answer:
        """Put Blob From URL or Copy Blob. Only Put Blob From URL has a blob type."""
        return await (self._copies.put_from_url if call.headers.get("x-ms-blob-type") else self._copies.copy)(call)

    def _configured(self, properties: str) -> None:
        policy = parsed(properties.encode()).find("./DeleteRetentionPolicy") if properties else None
        is_on = policy is not None and policy.findtext("Enabled", "").lower() == "true"
        self._blobs.history.retention_days = int(policy.findtext("Days", "0")) if policy is not None and is_on else 0

    # The access log

    def _public(self, name: str) -> str:
        try:
            return self._blobs.container(name).public
        except StorageError:
            return ""

    def _policies_text(self, name: str) -> str:
        return self._blobs.container(name).policies

    def _log_access(self, call: Call, status: int, before: str) -> None:
        """Write a line of Azurite's access log for a request that created, deleted or moved a blob, followed by the
        blob's facts. `before` has the facts from before the request.

        A request for the service's root is also logged. A client can send one with a unique parameter: its line follows
        the lines of all earlier requests.
        """
        if self._journal is None:
            return
        if not call.resource:
            self._write_line(call, status, "")
        elif "restype" not in call.query and (call.method, call.text("comp"), status) in TOLD:
            facts = before if call.method == "DELETE" else self._facts(call)
            if call.method == "DELETE" and (
                "versionid" in call.query or call.headers.get(DELETE_SNAPSHOTS, "").lower() == "only"
            ):
                return
            self._write_line(call, status, facts)
            if (call.text("comp"), status) == ("tier", 202):
                self._returning.append((self._blobs.clock() + REHYDRATION_SECONDS, call))

    def _log_rehydrated(self) -> None:
        """Write a line for each blob that has been rehydrated from the archive and still exists."""
        while self._returning and self._returning[0][0] <= self._blobs.clock():
            _, call = self._returning.popleft()
            if facts := self._facts(call):
                self._write_line(call, 200, facts)

    def _facts(self, call: Call) -> str:
        """Return the facts about the request's blob for the access log; '' if the blob does not exist."""
        container, name = split(call.resource)
        try:
            blob = self._blobs.find(self._blobs.container(container).id, name)
        except StorageError:
            return ""
        if blob is None:
            return ""
        kind = re.sub(r'["\\\s]', "", blob.headers.get("Content-Type", OCTETS))
        return f' "{blob.etag}" "{kind}" {blob.size} {blob.kind}'

    def _write_line(self, call: Call, status: int, facts: str) -> None:
        query = urlencode({key: value for key, value in call.query.items() if key != SECRET})
        when = time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime(self._blobs.clock()))
        plain = call.path.count("/") > 2 and "\\" not in unquote(call.path)  # not so a/%2F, and a/b\c
        path = call.path if plain else quote(f"/{call.account}/{call.resource}")
        target = f"{path}?{query}" if query else path
        print(f'127.0.0.1 - - [{when}] "{call.method} {target} HTTP/1.1" {status} -{facts}', file=self._journal)

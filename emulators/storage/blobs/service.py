"""The blob service's REST interface: which request is which operation.

https://learn.microsoft.com/rest/api/storageservices/blob-service-rest-api
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import ClassVar, TextIO
from urllib.parse import quote, urlencode

from emulators.storage.blobs import batch
from emulators.storage.blobs.access import BlobAccount, split
from emulators.storage.blobs.blocks import BlockOperations
from emulators.storage.blobs.containers import ContainerOperations
from emulators.storage.blobs.copies import SOURCE, CopyOperations
from emulators.storage.blobs.headers import OCTETS
from emulators.storage.blobs.leasing import LeaseOperations
from emulators.storage.blobs.operations import BlobOperations
from emulators.storage.blobs.requests import Requests, not_here
from emulators.storage.blobs.search import SearchOperations
from emulators.storage.blobs.store import Blobs
from emulators.storage.common.calls import Answer, Call
from emulators.storage.common.errors import StorageError, bad_parameter, not_served
from emulators.storage.common.service import Service

LONG_BODIES = ("", "block", "appendblock")  # operations of PUT whose bodies are a blob's bytes
NOT_HERE = {
    "undelete": "deleted blobs that can come back",
    "page": "page blobs",
    "pagelist": "page blobs",
    "incrementalcopy": "page blobs",
    "query": "queries of a blob's content",
    "seal": "sealed append blobs",
    "legalhold": "legal holds",
    "immutabilityPolicies": "immutability policies",
}
HEADERS_NOT_HERE = {
    "x-ms-structured-body": "framed bodies",
    "x-ms-encryption-key": "encryption with keys of the client's",
    "x-ms-encryption-scope": "encryption scopes",
    "x-ms-immutability-policy-until-date": "immutability policies",
    "x-ms-legal-hold": "legal holds",
}
PARTS = ("appendblock", "block", "blocklist", "copy", "lease", "metadata", "properties", "snapshot", "tags", "tier")
SECRET = "sig"


class BlobService(Service[BlobAccount]):
    """Answers requests to the blobs of one account. Whatever is not allowed raises StorageError."""

    largest_body: ClassVar[int] = 8 * 1024 * 1024  # of XML; a blob's bytes come by a stream

    def __init__(self, blobs: Blobs, account: BlobAccount, endpoint: str = "", journal: TextIO | None = None) -> None:
        super().__init__(account, blobs.settings, endpoint)
        self._blobs = blobs
        self._requests = Requests(blobs, self.account)
        self._journal = journal
        self._blob = BlobOperations(self._requests)
        self._blocks = BlockOperations(self._requests, self._blob)
        self._copies = CopyOperations(self._requests, self._blob, self._blocks)
        self._leases = LeaseOperations(self._requests)
        self._containers = ContainerOperations(self._requests)
        self._search = SearchOperations(self._requests)

    def streams(self, method: str, query: Mapping[str, str]) -> bool:
        return method == "PUT" and "restype" not in query and query.get("comp", "") in LONG_BODIES

    def purge(self) -> bool:
        return self._blobs.purge()

    async def _answered(self, call: Call) -> Answer:
        try:
            found = await self._routed(call)
        except StorageError as error:
            self._tell(call, error.status)
            raise
        self._tell(call, found.status)
        return found

    async def _routed(self, call: Call) -> Answer:
        if (what := NOT_HERE.get(call.text("comp"))) is not None:
            raise not_here(what)
        for header, what in HEADERS_NOT_HERE.items():
            if header in call.headers:
                raise not_here(what)
        container, _, name = call.resource.partition("/")
        if call.method == "POST" and call.text("comp") == "batch" and not name:
            self._requests.account.admit_any(call)
            return await batch.answer(call, self._answered, self.failure)
        if not container:
            return await self._service(call)
        if not name and call.text("restype") == "container":
            return await self._container(call)
        if call.text("restype") == "account":
            return self._account(call)
        return await self._one(call)

    # /

    async def _service(self, call: Call) -> Answer:
        match call.method, call.text("restype"), call.text("comp"):
            case "GET", "", "list":
                return self._containers.all_listed(call, self.endpoint)
            case "GET", "", "blobs":
                return self._search.of_all(call, self.endpoint)
            case "GET" | "HEAD", "account", "properties":
                return self._account(call)
        return self._of_service(call)

    def _account(self, call: Call) -> Answer:
        self._requests.account.admit_any(call)
        return Answer(200, headers={"x-ms-sku-name": "Standard_LRS", "x-ms-account-kind": "StorageV2"})

    # /CONTAINER

    async def _container(self, call: Call) -> Answer:
        containers = self._containers
        match call.method, call.text("comp"):
            case "PUT", "":
                return containers.create(call)
            case "DELETE", "":
                return containers.delete(call)
            case "GET" | "HEAD", "" | "metadata":
                return containers.properties(call)
            case "PUT", "metadata":
                return containers.set_metadata(call)
            case "GET" | "HEAD", "acl":
                return containers.policies(call)
            case "PUT", "acl":
                return containers.set_policies(call)
            case "GET", "list":
                return containers.listed(call, self.endpoint)
            case "GET", "blobs":
                return self._search.of_container(call, self.endpoint)
            case "PUT", "lease":
                return self._leases.of_container(call)
        raise not_served(call.method, call.path)

    # /CONTAINER/BLOB

    async def _one(self, call: Call) -> Answer:
        match call.method, call.text("comp"), SOURCE in call.headers:
            case "PUT", "", False:
                return await self._blob.put(call)
            case "PUT", "", True if call.headers.get("x-ms-blob-type"):
                return self._copies.put_from_url(call)
            case "PUT", "", True:
                return self._copies.copy(call)
            case "GET", "", _:
                return await self._blob.get(call)
            case "HEAD", "", _:
                return self._blob.head(call)
            case "DELETE", "", _:
                return self._blob.delete(call)
        return await self._part(call)

    async def _part(self, call: Call) -> Answer:
        match call.method, call.text("comp"):
            case "PUT", "block" if SOURCE in call.headers:
                return self._copies.put_block_from_url(call)
            case "PUT", "block":
                return await self._blocks.put_block(call)
            case "PUT", "blocklist":
                return self._blocks.commit(call)
            case "GET", "blocklist":
                return self._blocks.block_list(call)
            case "PUT", "appendblock" if SOURCE not in call.headers:
                return await self._blocks.append(call)
            case "GET" | "HEAD", "metadata":
                return self._blob.metadata(call)
            case "PUT", "metadata":
                return self._blob.set_metadata(call)
            case "PUT", "properties":
                return self._blob.set_properties(call)
            case "PUT", "tier":
                return self._blob.set_tier(call)
            case "GET", "tags":
                return self._blob.tags(call)
            case "PUT", "tags":
                return self._blob.set_tags(call)
            case "PUT", "snapshot":
                return self._blob.snapshot(call)
            case "PUT", "lease":
                return self._leases.of_blob(call)
            case "PUT", "copy":
                return self._copies.abort(call)
            case _, what if what not in ("", *PARTS):
                raise bad_parameter("comp", what, f"It is one of {', '.join(PARTS)}.")
        raise not_served(call.method, call.path)

    # What others know

    def _policies_text(self, name: str) -> str:
        return self._blobs.container(name).policies

    def _tell(self, call: Call, status: int) -> None:
        """Write a line of Azurite's access log for what made a blob, with what there is to know of it behind.

        Whoever asks for the service's root with a parameter of its own finds it there, behind all that was before.
        """
        if self._journal is None or (call.method != "PUT" and call.resource):
            return
        made = status in (201, 202) and "restype" not in call.query and call.text("comp") in ("", "blocklist")
        facts = ""
        if made and call.resource:
            container, name = split(call.resource)
            blob = self._blobs.find(self._blobs.container(container).id, name)
            if blob is not None:
                kind = re.sub(r'["\\\s]', "", blob.headers.get("Content-Type", OCTETS))
                facts = f' "{blob.etag}" "{kind}" {blob.size} {blob.kind}'
        elif call.resource:
            return
        query = urlencode({key: value for key, value in call.query.items() if key != SECRET})
        when = time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime(self._blobs.clock()))
        path = call.path if call.path.count("/") > 2 else quote(f"/{call.account}/{call.resource}")  # for a/%2F
        target = f"{path}?{query}" if query else path
        print(f'127.0.0.1 - - [{when}] "{call.method} {target} HTTP/1.1" {status} -{facts}', file=self._journal)

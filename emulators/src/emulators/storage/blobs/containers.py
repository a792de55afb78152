"""Operations on containers: creating, listing and deleting containers, and listing the blobs in one.

https://learn.microsoft.com/rest/api/storageservices/operations-on-containers
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import replace

from emulators.storage.blobs import encryption, headers, xml
from emulators.storage.blobs.conditions import Conditions
from emulators.storage.blobs.listing import ITSELF, Wanted
from emulators.storage.blobs.model import Container, Listed
from emulators.storage.blobs.requests import Operations, checked_container, lease_id
from emulators.storage.common.calls import Answer, Call
from emulators.storage.common.errors import StorageError, bad_parameter, invalid_header
from emulators.storage.common.naming import as_headers, metadata
from emulators.storage.common.policies import NONE, text_of
from emulators.storage.common.service import XML

PUBLIC = "x-ms-blob-public-access"
MOST = 5000  # entries in one answer
UNTIL = 2**31 - 1
ALSO = ("uncommittedblobs", "snapshots", "versions", "deletedwithversions", "deleted")  # as in listing.Wanted
INCLUDES = frozenset(
    {"copy", "deleted", "deletedwithversions", "immutabilitypolicy", "legalhold", "metadata", "permissions"}
    | {"snapshots", "system", "tags", "uncommittedblobs", "versions"}
)


class ContainerOperations(Operations):
    def create(self, call: Call) -> Answer:
        self._requests.admit(call, "c", "w", kind="c")
        public, encrypted = self._public(call), encryption.of_container(call)
        name = checked_container(call.resource)
        made = self._blobs.create_container(name, metadata(call.headers), *encrypted, public)
        return Answer(201, headers=headers.version(made))

    def delete(self, call: Call) -> Answer:
        container = self._writable(call, "d")
        self._blobs.delete_container(container)
        return Answer(202)

    def properties(self, call: Call) -> Answer:
        container = self._readable(call)
        lease = headers.lease(container.lease, self._blobs.clock())
        facts = {"x-ms-has-immutability-policy": "false", "x-ms-has-legal-hold": "false"}
        facts["x-ms-immutable-storage-with-versioning-enabled"] = "false"
        facts["x-ms-default-encryption-scope"] = container.scope or encryption.ACCOUNT_KEY
        facts["x-ms-deny-encryption-scope-override"] = str(container.scope_fixed).lower()
        found = {**headers.version(container), **as_headers(container.metadata), **lease}
        return Answer(200, headers={**found, **facts, **_opened(container)})

    def set_metadata(self, call: Call) -> Answer:
        return self._changed(replace(self._writable(call, "w"), metadata=metadata(call.headers)))

    def policies(self, call: Call) -> Answer:
        """Answer with the stored access policies, for the holder of the key."""
        self._requests.admit(call, kind="c", action="containers/getAcl/action")  # signatures can't allow it
        container = self._blobs.container(checked_container(call.resource))
        text = container.policies or NONE
        return Answer(200, text.encode(), {**headers.version(container), **_opened(container), **XML})

    def set_policies(self, call: Call) -> Answer:
        self._requests.admit(call, kind="c", action="containers/setAcl/action")  # signatures can't allow it
        container = self._blobs.container(checked_container(call.resource))
        public = self._public(call)
        Conditions.of(call.headers).allow_write(container.etag, container.modified)
        return self._changed(replace(container, policies=text_of(call.body, "blob"), public=public))

    def listed(self, call: Call, endpoint: str) -> Answer:
        """Answer with a page of the blobs."""
        container = self._readable(call, "l")
        limit, start = page_of(call)
        includes = included(call)
        name, _, time = (start or call.text("startFrom")).partition("\0")
        also = [part in includes for part in ALSO]
        wanted = Wanted(call.text("prefix"), call.text("delimiter"), (name, time), limit + 1, *also)
        found = self._blobs.listed(container.id, wanted)
        following = marker_of(_start_of(found[limit])) if len(found) > limit else ""
        page = xml.Page(endpoint, call.query, includes, self._blobs.clock(), following)
        return Answer(200, xml.blobs(page, container.name, found[:limit]), XML)

    def all_listed(self, call: Call, endpoint: str) -> Answer:
        """Answer with a page of the containers."""
        self._requests.admit(call, "l", kind="s")
        limit, start = page_of(call)
        found = self._blobs.containers(call.text("prefix"), start, limit + 1)
        following = marker_of(found[limit].name) if len(found) > limit else ""
        page = xml.Page(endpoint, call.query, included(call), self._blobs.clock(), following)
        return Answer(200, xml.containers(page, found[:limit]), XML)

    def _public(self, call: Call) -> str:
        """Return the public access that a request asks for. Raises StorageError, 400, and 409 if the account
        forbids public access."""
        level = call.headers.get(PUBLIC, "")
        if level not in ("", "blob", "container"):
            raise invalid_header(PUBLIC, level)
        if level and not self._requests.account.allows_public:
            sentence = "Public access is not permitted on this storage account."
            raise StorageError(409, "PublicAccessNotPermitted", sentence)
        return level

    def _readable(self, call: Call, permission: str = "r") -> Container:
        self._requests.admit(call, permission, kind="c")
        container = self._blobs.container(checked_container(call.resource))
        container.lease.admit_read(self._blobs.clock(), lease_id(call), "Container")
        return container

    def _writable(self, call: Call, permission: str) -> Container:
        self._requests.admit(call, permission, kind="c")
        container = self._blobs.container(checked_container(call.resource))
        if permission == "d":
            container.lease.admit(self._blobs.clock(), lease_id(call), "Container")
        else:
            container.lease.admit_read(self._blobs.clock(), lease_id(call), "Container")
        Conditions.of(call.headers).allow_write(container.etag, container.modified)
        return container

    def _changed(self, container: Container) -> Answer:
        made = replace(container, etag=self._blobs.new_etag(), modified=self._blobs.clock())
        self._blobs.change_container(made)
        return Answer(200, headers=headers.version(made))


def _opened(container: Container) -> dict[str, str]:
    return {PUBLIC: container.public} if container.public else {}


def _start_of(entry: Listed) -> str:
    name, blob = entry
    if blob is None:
        return name
    return f"{name}\0{blob.snapshot or (blob.version if blob.previous else ITSELF)}"


def page_of(call: Call) -> tuple[int, str]:
    """Return the maximum number of entries and the name from which to start. Raises StorageError, 400, for an
    invalid marker."""
    limit = min(call.number("maxresults", MOST, 1, UNTIL), MOST)
    text = call.text("marker")
    try:
        return limit, base64.urlsafe_b64decode(text.encode()).decode()
    except (binascii.Error, ValueError):
        raise bad_parameter("marker", text, "It is none that an answer had as NextMarker.") from None


def included(call: Call) -> frozenset[str]:
    """Return the parts that a list includes beside names and properties. Raises StorageError, 400, for an unknown
    part."""
    wanted = frozenset(filter(None, call.text("include").lower().split(",")))
    if unknown := wanted - INCLUDES:
        raise bad_parameter("include", ",".join(sorted(unknown)), f"It is of {', '.join(sorted(INCLUDES))}.")
    return wanted


def marker_of(name: str) -> str:
    return base64.urlsafe_b64encode(name.encode()).decode()

"""Shared access signatures for blobs: of a container or one blob, with or without a stored access policy.

https://learn.microsoft.com/rest/api/storageservices/create-service-sas
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from emulators.storage.common import sas
from emulators.storage.common.account import Account
from emulators.storage.common.calls import Call
from emulators.storage.common.errors import unauthenticated
from emulators.storage.common.rights import Right, Terms

OLDEST = "2015-04-05"  # the oldest supported text to sign
WITH_RESOURCE = "2018-11-09"  # from this version on the resource type and the snapshot are signed, too
# Response headers that a signature may set.
OVERRIDES = {
    "rscc": "Cache-Control",
    "rscd": "Content-Disposition",
    "rsce": "Content-Encoding",
    "rscl": "Content-Language",
    "rsct": "Content-Type",
}


def split(resource: str) -> tuple[str, str]:
    """Return the container and blob of a path. A blob directly under the account is in the container $root."""
    container, slash, name = resource.partition("/")
    return (container, name) if slash else ("$root", container)


@dataclass(frozen=True)
class BlobAccount(Account):
    """With `allows_public`, a container can be opened to requests without any authorization. `public` returns the
    public access of a container: '', `blob` (its blobs can be read) or `container` (its blobs can be listed,
    too)."""

    allows_public: bool = False
    public: Callable[[str], str] = lambda _name: ""

    def admit(self, call: Call, right: Right) -> Terms:
        """Authorize a request, and return the terms of its signature. Raises StorageError, 403 or 401."""
        is_anonymous = "sig" not in call.query and not call.headers.get("Authorization")
        if is_anonymous and self.allows_public and self._is_open(call, right):
            return Terms("r")
        return super().admit(call, right)

    def _is_open(self, call: Call, right: Right) -> bool:
        """Return whether anyone has this right: to read a blob, or to read and list an open container."""
        if call.account != self.name or not right.name:
            return False
        if right.kind == "o":
            return right.any_of == ("r",) and self.public(right.name) in ("blob", "container")
        return right.any_of in (("r",), ("l",)) and self.public(right.name) == "container"

    def _texts_of_service_sas(self, call: Call) -> list[str]:
        version, kind = call.text("sv"), call.text("sr")
        if version < OLDEST or kind not in ("b", "bs", "bv", "c"):
            raise unauthenticated(
                f"This emulator knows signatures for sr=b, bs, bv and c, of version {OLDEST} or later."
            )
        container, blob = _named(call)
        resource = f"/blob/{self.name}/{container}" + ("" if kind == "c" else f"/{blob}")
        middle = sas.texts(call, "sip", "spr", "sv")
        if version >= WITH_RESOURCE:
            middle += [kind, call.text({"bs": "snapshot", "bv": "versionid"}.get(kind, ""))]
        middle += sas.texts(call, "ses") if version >= sas.WITH_SCOPE else []
        return sas.service_texts(call, resource, middle, sas.texts(call, *OVERRIDES))

    def _is_for(self, call: Call, right: Right) -> bool:
        """Return whether a signature may be used for this right: for blobs, and for a container's signature
        (`sr=c`) also to list and search that container."""
        listing = right.any_of in (("l",), ("f",)) and bool(right.name)
        return right.kind == "o" or (listing and call.text("sr") == "c")

    def _resource_of_sas(self, call: Call) -> str:
        return _named(call)[0]


def _named(call: Call) -> tuple[str, str]:
    """Return the container and blob of a request, as its signature names them."""
    if call.text("restype") == "container" or ("restype" in call.query and "/" not in call.resource):
        return call.resource.partition("/")[0], ""
    return split(call.resource)

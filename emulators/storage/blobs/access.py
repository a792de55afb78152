"""Shared access signatures for blobs: of a container or one blob, with or without a stored access policy.

https://learn.microsoft.com/rest/api/storageservices/create-service-sas
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from emulators.storage.common.account import Account, Right, Terms
from emulators.storage.common.calls import Call
from emulators.storage.common.errors import StorageError, unauthenticated

OLDEST = "2018-11-09"  # of the texts to sign that are known here
WITH_SCOPE = "2020-12-06"  # from here on the encryption scope is signed too
# Headers of the answer that a signature may set.
OVERRIDES = {
    "rscc": "Cache-Control",
    "rscd": "Content-Disposition",
    "rsce": "Content-Encoding",
    "rscl": "Content-Language",
    "rsct": "Content-Type",
}


def split(resource: str) -> tuple[str, str]:
    """Container and blob. A blob directly under the account is in the container $root."""
    container, slash, name = resource.partition("/")
    return (container, name) if slash else ("$root", container)


@dataclass(frozen=True)
class BlobAccount(Account):
    """`policy` finds a container's stored access policy by its id; None if there is none."""

    policy: Callable[[str, str], Terms | None] = lambda _container, _id: None

    def _text_of_service_sas(self, call: Call) -> str:
        version, kind = call.text("sv"), call.text("sr")
        if version < OLDEST or kind not in ("b", "bs", "c"):
            raise unauthenticated(f"This emulator knows signatures for sr=b, bs and c, of version {OLDEST} or later.")
        if "skoid" in call.query:
            raise unauthenticated("This emulator gives out no user delegation keys, so none can have signed.")
        container, blob = _named(call)
        resource = f"/blob/{self.name}/{container}" + ("" if kind == "c" else f"/{blob}")
        lines = [call.text("sp"), call.text("st"), call.text("se"), resource]
        lines += [call.text(name) for name in ("si", "sip", "spr", "sv", "sr")]
        lines += [call.text("snapshot") if kind == "bs" else ""]
        lines += [call.text("ses")] if version >= WITH_SCOPE else []
        return "\n".join([*lines, *(call.text(name) for name in OVERRIDES)])

    def _is_for(self, call: Call, right: Right) -> bool:
        """Blobs; of what is done with containers, a signature for one allows to list it and search it alone."""
        listing = right.any_of in (("l",), ("f",)) and bool(right.name)
        return right.kind == "o" or (listing and call.text("sr") == "c")

    def _terms(self, call: Call) -> Terms:
        own = super()._terms(call)
        if not call.text("si") or "ss" in call.query:
            return own
        kept = self.policy(_named(call)[0], call.text("si"))
        if kept is None:
            raise StorageError(403, "AuthenticationFailed", "The container has no access policy of this name.")
        return Terms(own.permissions or kept.permissions, own.start or kept.start, own.end or kept.end)


def _named(call: Call) -> tuple[str, str]:
    """The container and blob of a request, as a signature for them names them."""
    if call.text("restype") == "container":
        return call.resource.partition("/")[0], ""
    return split(call.resource)

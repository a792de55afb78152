"""The interface of each service to the HTTP server, and the operations that all three services share: CORS, and
requests about the service itself.

https://learn.microsoft.com/rest/api/storageservices/set-blob-service-properties
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Generic, TypeVar

from emulators.storage.common import cors, service_xml
from emulators.storage.common.account import Account
from emulators.storage.common.calls import SECONDARY, Answer, Call, checked_version
from emulators.storage.common.database import Settings
from emulators.storage.common.delegation import delegation_key
from emulators.storage.common.errors import StorageError, bad_parameter, not_served
from emulators.storage.common.policies import NONE, policies_of, text_of
from emulators.storage.common.reserve import Reserve
from emulators.storage.common.rights import Right, Terms

XML = {"Content-Type": "application/xml"}
PROPERTIES = "properties"
OF_PAGES = {"GET", "HEAD", "OPTIONS"}
Admitting = TypeVar("Admitting", bound=Account)


class Service(ABC, Generic[Admitting]):
    """A service of the account. `endpoint`, its address, is set once it is served."""

    largest_body: ClassVar[int]
    backslashes: ClassVar[bool] = True  # whether names keep backslashes
    reserve: Reserve | None = None  # of the disk with the service's data

    def __init__(self, account: Admitting, settings: Settings, endpoint: str = "") -> None:
        self.account = replace(account, policy=self._policy)
        self.endpoint = endpoint
        self._settings = settings
        self._rules = cors.rules(settings.get(PROPERTIES))

    async def answer(self, call: Call) -> Answer:
        """Answer a request. Raises StorageError for a request that is not allowed."""
        if call.method == "OPTIONS":
            return Answer(200, headers=cors.preflight(self._rules, call.headers))
        told = cors.answered(self._rules, call.method, call.headers) if self._rules else {}
        try:
            checked_version(call.headers, self.account.clock())
            if call.secondary and call.method not in OF_PAGES:
                raise _read_only()
            found = await self._answered(call)
        except StorageError as error:
            error.headers = {**error.headers, **told}
            raise
        return replace(found, headers={**found.headers, **told}) if told else found

    @property
    def state(self) -> Path | None:
        return self.reserve.folder if self.reserve else None

    @abstractmethod
    async def _answered(self, call: Call) -> Answer:
        """Return the answer without CORS headers."""

    @abstractmethod
    def _policies_text(self, name: str) -> str:
        """Return the stored access policies of the container, queue or table, as XML. Raises StorageError, 404."""

    def failure(self, error: StorageError, note: str) -> Answer:
        """Return the answer to a refused request. `note` is appended to the message."""
        body = b"" if error.status == 304 else service_xml.failure(error, note)
        # Hadoop's ABFS driver begins with a HEAD, and shows the reason of its answer (AbfsRestOperationException.java).
        return Answer(error.status, body, {**XML, **error.headers}, reason=error.message if error.status == 501 else "")

    @abstractmethod
    def purge(self) -> bool:
        """Remove some of the deleted data. Returns whether there may be more."""

    def streams(self, method: str, query: Mapping[str, str]) -> bool:  # noqa: ARG002
        """Return whether the body of this request may be too large for memory."""
        return False

    def lets_in(self, method: str, headers: Mapping[str, str], signed: bool) -> bool:
        """Return whether a page may send this request. Allowed are: a page whose origin has a CORS rule, a page
        that asks whether a rule exists, a page that reads a signed URL (without a rule the answer has no CORS
        header, so the browser withholds it from the page), and a browser that follows a link. A request with an
        Authorization header is not from a page, or was allowed by a rule, because browsers send a preflight
        first."""
        origin = headers.get("Origin")
        if origin is not None and (method == "OPTIONS" or cors.names(self._rules, origin)):
            return True
        if "Authorization" in headers or (signed and method in ("GET", "HEAD")):
            return True
        return origin is None and method == "GET" and headers.get("Sec-Fetch-Mode") == "navigate"

    def account_at(self, host: str) -> str:
        """Return the name of the account, or of its secondary region, if the host is `ACCOUNT.blob.localhost`;
        otherwise ''."""
        name, _, rest = host.partition(".")
        is_here = rest.partition(":")[0] == f"{self.account.service}.localhost"
        return name if is_here and name.removesuffix(SECONDARY) == self.account.name else ""

    # Requests about the service itself

    def _of_service(self, call: Call) -> Answer:
        """Answer a request about the service: its properties, its statistics, or a user delegation key."""
        match call.method, call.text("restype"), call.text("comp"):
            case "GET", "service", "properties":
                self.account.admit(call, Right("s", ("r",)))
                text = self._settings.get(PROPERTIES) or service_xml.HEAD + service_xml.DEFAULT_PROPERTIES
                return Answer(200, text.encode(), XML)
            case "PUT", "service", "properties":
                self.account.admit(call, Right("s", ("w",)))
                text = service_xml.merged(self._settings.get(PROPERTIES), call.body)
                self._rules = cors.rules(text)
                self._settings.put(PROPERTIES, text)
                self._configured(text)
                return Answer(202)
            case "GET", "service", "stats":
                self.account.admit(call, Right("s", ("r",)))
                if not call.secondary:
                    raise bad_parameter("comp", "stats", "Statistics are those of the secondary location.")
                return Answer(200, service_xml.statistics(self.account.clock()), XML)
            case "POST", "service", "userdelegationkey":
                return Answer(200, delegation_key(self.account, call), XML)
        raise not_served(call.method, call.path)

    def _configured(self, properties: str) -> None:
        """Apply new properties of the service, an XML document."""

    def _of_policies(self, call: Call, name: str, change: Callable[[str, str], None]) -> Answer:
        """Answer with the stored access policies of a queue or table. The request needs the key or a role."""
        verb = "set" if call.method == "PUT" else "get"
        self.account.admit(call, Right("c", (), name, f"{self.account.service}s/{verb}Acl/action"))
        if call.method == "PUT":
            change(name, text_of(call.body, self.account.service))
            return Answer(204)
        if call.method in ("GET", "HEAD"):
            return Answer(200, (self._policies_text(name) or NONE).encode(), XML)
        raise not_served(call.method, call.path)

    def _policy(self, name: str, policy: str) -> Terms | None:
        return policies_of(self._policies_text(name).encode()).get(policy)


def _read_only() -> StorageError:
    sentence = "The account being accessed does not have sufficient permissions to execute this operation."
    return StorageError(403, "InsufficientAccountPermissions", f"{sentence} Write operations are not allowed.")

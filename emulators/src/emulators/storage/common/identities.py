"""The identities that the account admits by token, and the permissions of their roles for blobs, queues and tables.

https://learn.microsoft.com/rest/api/storageservices/authorize-with-azure-active-directory
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from emulators.arm.roles import Role
from emulators.storage.common.errors import StorageError, unauthenticated
from emulators.storage.common.rights import Right
from emulators.tokens import TENANT, principal_of

AUDIENCE = "https://storage.azure.com"
LOGIN = f"https://login.microsoftonline.com/{TENANT}/oauth2/authorize"
CHALLENGE = f"Bearer authorization_uri={LOGIN} resource_id={AUDIENCE}"
# The actions of a role, below the service, for the letters of a shared access signature: for objects in a container,
# queue or table, for the container, queue or table itself, and for the service. One of several joined by | is enough.
ACTIONS: dict[str, dict[str, dict[str, str]]] = {
    "blob": {
        "o": {
            "r": "containers/blobs/read",
            "a": "containers/blobs/add/action",
            "c": "containers/blobs/write",
            "w": "containers/blobs/write",
            "d": "containers/blobs/delete",
            "t": "containers/blobs/tags/write",
            "x": "containers/blobs/deleteBlobVersion/action",
        },
        "c": {
            "r": "containers/read",
            "c": "containers/write",
            "w": "containers/write",
            "d": "containers/delete",
            "l": "containers/blobs/read",
            "f": "containers/blobs/filter/action",
        },
        "s": {"l": "containers/read", "f": "containers/blobs/filter/action", "r": "read", "w": "write"},
    },
    "queue": {
        "o": {
            "r": "queues/messages/read",
            "a": "queues/messages/add/action|queues/messages/write",
            "p": "queues/messages/process/action",
            "u": "queues/messages/write",
            "d": "queues/messages/delete",
        },
        "c": {"r": "queues/read", "c": "queues/write", "w": "queues/write", "d": "queues/delete"},
        "s": {"l": "queues/read", "r": "read", "w": "write"},
    },
    "table": {
        "o": {
            "r": "tables/entities/read",
            "a": "tables/entities/add/action|tables/entities/write",
            "u": "tables/entities/update/action|tables/entities/write",
            "d": "tables/entities/delete",
        },
        "c": {"r": "tables/read", "l": "tables/read", "c": "tables/write", "w": "tables/write", "d": "tables/delete"},
        "s": {"r": "read", "w": "write"},
    },
}
SCOPES = {"container": "blob", "queue": "queue", "table": "table"}


@dataclass(frozen=True)
class Grant:
    """A role of an identity for the whole account or, with `service` and `name`, for one container, queue or table."""

    principal: str
    role: Role
    service: str = ""
    name: str = ""

    def reaches(self, service: str, name: str) -> bool:
        return not self.service or (self.service, self.name.lower()) == (service, name.lower())


@dataclass(frozen=True)
class Identities:
    """The identities that may use the account. Their tokens are signed with `key`, and their grants are known."""

    key: str = field(repr=False)
    grants: tuple[Grant, ...] = ()

    @classmethod
    def of(cls, source: Mapping[str, Any]) -> Identities:
        """Read `{"key", "grants": [{"principal", "container" or "queue" or "table", "actions", "data_actions"}]}`."""
        return cls(source["key"], tuple(map(_grant, source.get("grants", ()))))

    def admit(self, token: str, service: str, right: Right) -> str:
        """Return the token's identity, if its roles allow this. Raises StorageError, 401 or 403."""
        principal = self.principal(token)
        self.check(principal, service, right)
        return principal

    def principal(self, token: str) -> str:
        """Return the principal of a token. Raises StorageError, 401, for a token that `key` did not sign."""
        try:
            return principal_of(token, self.key, AUDIENCE)
        except ValueError as error:
            sentence = f"Authentication information is not valid: {error}"
            headers = {"WWW-Authenticate": CHALLENGE}
            raise StorageError(401, "InvalidAuthenticationInfo", sentence, headers=headers) from error

    def check(self, principal: str, service: str, right: Right) -> None:
        """Raise StorageError, 403, unless the identity's roles allow the request."""
        roles = [g.role for g in self.grants if g.principal == principal and g.reaches(service, right.name)]

        def allowed(actions: str) -> bool:
            return any(role.allows(action) for role in roles for action in actions.split("|"))

        if not any(all(map(allowed, needed)) for needed in actions_of(service, right)):
            sentence = "This request is not authorized to perform this operation using this permission."
            raise StorageError(403, "AuthorizationPermissionMismatch", sentence)


def _grant(one: Mapping[str, Any]) -> Grant:
    role = Role("", one.get("role", ""), tuple(one.get("actions", ())), (), tuple(one.get("data_actions", ())))
    scope = next(((service, one[key]) for key, service in SCOPES.items() if one.get(key)), ("", ""))
    return Grant(one["principal"], role, *scope)


def actions_of(service: str, right: Right) -> list[list[str]]:
    """Return lists of actions, of which a request needs one complete list. Alternatives for one action are joined
    by |."""
    below = f"Microsoft.Storage/storageAccounts/{service}Services"
    if right.action:
        return [[f"{below}/{right.action}"]]
    known = ACTIONS[service][right.kind]
    return [
        ["|".join(f"{below}/{one}" for one in known[letter].split("|")) for letter in letters]
        for letters in right.any_of
    ]


def no_tokens() -> StorageError:
    return unauthenticated("This account takes no tokens: its configuration has no `identities`.")

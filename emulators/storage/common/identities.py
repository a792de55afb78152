"""Which identities the account admits by their token, and what their roles let them do with tables.

https://learn.microsoft.com/rest/api/storageservices/authorize-with-azure-active-directory
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from emulators.arm.access import Role
from emulators.storage.common.errors import StorageError, unauthenticated
from emulators.tokens import principal_of

AUDIENCE = "https://storage.azure.com"
TABLES = "Microsoft.Storage/storageAccounts/tableServices"
ENTITIES = f"{TABLES}/tables/entities"
# What the letters of a shared access signature are called as actions of a role. A query reads entities.
OF_ENTITIES = {
    "r": f"{ENTITIES}/read",
    "a": f"{ENTITIES}/add/action",
    "u": f"{ENTITIES}/update/action",
    "d": f"{ENTITIES}/delete",
}
OF_TABLES = {"r": "read", "l": "read", "c": "write", "w": "write", "d": "delete"}


@dataclass(frozen=True)
class Grant:
    """A role of an identity, on one table, or on all of the account's if `table` is empty."""

    principal: str
    role: Role
    table: str = ""


@dataclass(frozen=True)
class Identities:
    """Whose tokens count: those that `key` signed."""

    key: str = field(repr=False)
    grants: tuple[Grant, ...] = ()

    @classmethod
    def of(cls, source: Mapping[str, Any]) -> Identities:
        """Read `{"key", "grants": [{"principal", "table", "actions", "data_actions"}]}`."""
        grants = (
            Grant(
                one["principal"],
                Role("", one.get("role", ""), tuple(one.get("actions", ())), (), tuple(one.get("data_actions", ()))),
                one.get("table", ""),
            )
            for one in source.get("grants", ())
        )
        return cls(source["key"], tuple(grants))

    def admit(self, token: str, actions: tuple[str, ...], table: str) -> None:
        """Return if the roles of the token's identity allow these actions. Raises StorageError, 401 or 403."""
        try:
            principal = principal_of(token, self.key, AUDIENCE)
        except ValueError as error:
            raise StorageError(
                401, "InvalidAuthenticationInfo", f"Authentication information is not valid: {error}"
            ) from error
        roles = [g.role for g in self.grants if g.principal == principal and g.table.lower() in ("", table.lower())]
        if not all(any(role.allows(action) for role in roles) for action in actions):
            sentence = "This request is not authorized to perform this operation using this permission."
            raise StorageError(403, "AuthorizationPermissionMismatch", sentence)


def actions_of(kind: str, letters: str) -> tuple[str, ...]:
    """The actions that a request needs, of the resource type and permissions that a signature would need."""
    if kind == "o":
        return tuple(OF_ENTITIES[letter] for letter in letters)
    below = TABLES if kind == "s" else f"{TABLES}/tables"
    return tuple(f"{below}/{OF_TABLES[letter]}" for letter in letters)


def no_tokens() -> StorageError:
    return unauthenticated("This account takes no tokens: its configuration has no `identities`.")

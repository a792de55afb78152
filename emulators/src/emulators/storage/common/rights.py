"""The rights that requests need, and the terms that signatures grant."""

from __future__ import annotations

from dataclasses import dataclass

PERMISSIONS = {"blob": "racwdxyltmeopfi", "queue": "raup", "table": "raud"}  # of stored access policies
ALL = "racwdxltmeopuf"  # the permissions of the account's key, in the letters of a SAS


@dataclass(frozen=True)
class Right:
    """The right that a request needs from a SAS: a resource type (s, c, o) and any one of several sets of permissions.

    `name` is the queue or table, or empty for the service itself, because a service SAS is for one queue or table.
    `action` is the action that a role must allow, if the permissions do not determine it.
    """

    kind: str
    any_of: tuple[str, ...]
    name: str = ""
    action: str = ""


@dataclass(frozen=True)
class Terms:
    """The terms of a SAS: its permissions, and its start and end in ISO 8601. `first` and `last` bound the keys of
    a table's SAS."""

    permissions: str
    start: str | None = None
    end: str | None = None
    first: tuple[str, str | None] | None = None
    last: tuple[str, str | None] | None = None

    def reaches(self, partition: str, row: str) -> bool:
        """Return whether an entity with these keys is in the range."""
        after = self.first is None or (partition, row) >= (self.first[0], self.first[1] or "")
        if self.last is None or partition < self.last[0]:
            return after
        return after and partition == self.last[0] and (self.last[1] is None or row <= self.last[1])


KEY_HOLDER = Terms(ALL)

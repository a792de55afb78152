"""A guest: the program behind a bearer token, which may do a part of what people may do."""

from __future__ import annotations

from typing import Any, Protocol

from shared.kernel.person import Person

Arguments = dict[str, Any]  # of the function that answers an operation, by the names of its parameters


class Guest(Protocol):
    """Decides which operations a program may call, and what the program sees of their answers."""

    @property
    def person(self) -> Person:
        """The guest as records store a person. The id begins with a word that no object id of Entra ID begins with."""

    @property
    def may_run_code(self) -> bool: ...

    def admitted(self, ports: Any, operation: str, arguments: Arguments) -> Arguments:
        """Return the arguments with which the operation may be called. Raises Forbidden, or NotFound for a thing that
        the guest may not see.
        """

    def shown(self, ports: Any, operation: str, value: Any) -> Any:
        """Return the part of the operation's value that the guest may see. Raises NotFound if there is none."""

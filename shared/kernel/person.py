"""Someone who acts: asks for a run, leases nodes, writes a note, removes something."""

from __future__ import annotations

from typing import NamedTuple


class Person(NamedTuple):
    """A name, and what stays when the name changes: the object id in Entra ID.

    Without an id nobody vouches for the name: with keys it is the caller's own word, on a drop the uploader's.
    """

    name: str = ""
    id: str = ""


NOBODY = Person()

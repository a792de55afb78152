"""A person who acts: requests a run, leases nodes, writes a note, or removes data."""

from __future__ import annotations

from typing import NamedTuple


class Person(NamedTuple):
    """A name, and the object id in Entra ID, which stays the same when the name changes.

    Without an id the name is unverified: with keys the caller claims it, and on a drop the uploader does.
    """

    name: str = ""
    id: str = ""


NOBODY = Person()
PROGRAM = "grant:"  # begins the id of a program with a grant; an object id in Entra ID is a GUID

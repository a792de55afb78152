"""Who sits at this machine, for the records that say who did what."""

from __future__ import annotations

import getpass
import os

LONGEST = 64  # characters


def local_name() -> str:
    """TRAINYARD_USER, else the name that the system knows; '' in a container whose user has none.

    A deployment with Entra ID knows better, and doesn't ask.
    """
    try:
        name = os.environ.get("TRAINYARD_USER") or getpass.getuser()
    except (OSError, KeyError):
        return ""
    return name.strip()[:LONGEST]

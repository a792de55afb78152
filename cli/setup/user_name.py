"""The name of this machine's user, for the records of people's actions."""

from __future__ import annotations

import getpass
import os

LONGEST = 64  # characters


def local_name() -> str:
    """Return TRAINYARD_USER, or the user's name in this system; '' in a container whose user has no name.

    A deployment with Entra ID uses the signed-in identity instead.
    """
    try:
        name = os.environ.get("TRAINYARD_USER") or getpass.getuser()
    except (OSError, KeyError):
        return ""
    return name.strip()[:LONGEST]

"""Keep the machine's other users out: a port of 127.0.0.1 is open to all of them.

Linux tells whose a connection of this machine is, in /proc/net/tcp. Elsewhere nobody tells, and all are let in.
"""

from __future__ import annotations

import os
from pathlib import Path

TABLE = Path("/proc/net/tcp")
LOCAL, REMOTE, USER, INODE = 1, 2, 7, 9  # columns
Address = tuple[str, int]


def is_ours(peer: Address, here: Address) -> bool:
    """Whether the other end of a connection belongs to this user or to root. Without the table it counts as ours;
    with it, a connection whose client has gone already does not."""
    try:
        lines = TABLE.read_text("ascii").splitlines()
    except OSError:
        return True
    ends = (f":{peer[1]:04X}", f":{here[1]:04X}")
    for line in lines:
        if ends[0] in line:
            row = line.split()
            if row[LOCAL].endswith(ends[0]) and row[REMOTE].endswith(ends[1]):
                # A socket that its program has closed has no inode any more, and shows as root's.
                return row[INODE] != "0" and int(row[USER]) in (0, os.getuid())
    return False

"""Protection from other users of this machine, because every user can connect to a port of 127.0.0.1.

Linux reports the user of a local connection, either in answer to a query for one connection (sock_diag(7)), or in the
lists of all connections, /proc/net/tcp and tcp6, which take a millisecond for a thousand connections. Other systems do
not report the user, so every connection is accepted.

A client in .NET or Java uses a dual-stack socket, so its connection to 127.0.0.1 is listed in tcp6 only.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from pathlib import Path

TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
LOCAL, REMOTE, USER, INODE = 1, 2, 7, 9  # columns
Address = tuple[str, int]

_NETLINK_SOCK_DIAG, _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST, _NLMSG_ERROR = 4, 20, 1, 2
_HEADER = struct.Struct("=IHHII")  # nlmsghdr: length, type, flags, sequence, port
_ASKED = struct.Struct("=BBBBI")  # inet_diag_req_v2: family, protocol, extensions, padding, states
_ENDS = struct.Struct("!HH16s16s")  # inet_diag_sockid, with the interface and the cookie that follow
_ANY = struct.pack("=I", 0) + b"\xff" * 8
_OWNER = struct.Struct("=II")  # user and inode, the last members of inet_diag_msg
_OWNER_AT = _HEADER.size + 4 + _ENDS.size + len(_ANY) + 3 * 4


def is_ours(peer: Address, here: Address) -> bool:
    """Return whether the other end of a connection belongs to this user or to root. A connection counts as ours if
    its owner is unknown, and not if its client has already closed it."""
    try:
        owner = _asked(peer, here)
    except (OSError, AttributeError):  # this sandbox or system does not support the query
        try:
            owner = _listed(peer, here)
        except OSError:
            return True
    # A socket that its program has closed has no inode and is shown as root's.
    return owner is not None and owner[1] != 0 and owner[0] in (0, os.getuid())


def _asked(peer: Address, here: Address) -> tuple[int, int] | None:
    """Query the user and the inode of the client's socket; None for an unknown connection."""
    ends = _ENDS.pack(peer[1], here[1], socket.inet_aton(peer[0]), socket.inet_aton(here[0])) + _ANY
    body = _ASKED.pack(socket.AF_INET, socket.IPPROTO_TCP, 0, 0, 0xFFFFFFFF) + ends
    head = _HEADER.pack(_HEADER.size + len(body), _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST, 1, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG) as kernel:
        kernel.settimeout(1.0)
        kernel.send(head + body)
        answer = kernel.recv(4096)
    if _HEADER.unpack_from(answer)[1] == _NLMSG_ERROR:
        code = -struct.unpack_from("=i", answer, _HEADER.size)[0]
        if code == errno.ENOENT:
            return None
        raise OSError(code, os.strerror(code))
    user, inode = _OWNER.unpack_from(answer, _OWNER_AT)
    return int(user), int(inode)


def _listed(peer: Address, here: Address) -> tuple[int, int] | None:
    """Return the user and the inode of the client's socket from the lists; None if there is no such connection.
    Raises OSError if the lists do not exist."""
    texts = [table.read_text("ascii") for table in TABLES if table.exists()]
    if not texts:
        raise FileNotFoundError(f"there is no {TABLES[0]}")
    ends = (f":{peer[1]:04X}", f":{here[1]:04X}")
    rows = (line.split() for text in texts for line in text.splitlines() if ends[0] in line)
    found = (row for row in rows if row[LOCAL].endswith(ends[0]) and row[REMOTE].endswith(ends[1]))
    return next(((int(row[USER]), int(row[INODE])) for row in found), None)

"""One worker of a team, for a test that plays its agent; or a peer that announces its port and then does nothing.

meeting.py worker              meets for ever, as its agent says
meeting.py peer PORT RANK      a peer of two that comes to the store at this port and never connects
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from datetime import timedelta
from typing import Any

import torch.distributed as dist
from elastic.worker import Team

ctypes.CDLL(None).prctl(1, int(signal.SIGKILL))  # PR_SET_PDEATHSIG: end with the test
os.environ["GLOO_SOCKET_IFNAME"] = "lo"


class Mute(dist.Store):
    """A store that accepts this process's values, and returns no values of the others."""

    def __init__(self, store: dist.Store) -> None:
        super().__init__()
        self._store = store

    def set(self, key: str, value: Any) -> None:
        self._store.set(key, value)

    def get(self, _key: str) -> bytes:
        time.sleep(3600)
        raise AssertionError

    def wait(self, *_: Any) -> None:
        time.sleep(3600)

    def add(self, key: str, amount: int) -> int:
        return int(self._store.add(key, amount))

    def check(self, _keys: list[str]) -> bool:
        return False


def peer(port: int, rank: int) -> None:
    store = dist.TCPStore("127.0.0.1", port, None, False, wait_for_workers=False)
    store.set(f"here/{rank}", "")
    mute = Mute(dist.PrefixStore("group", store))
    dist.init_process_group("gloo", store=mute, rank=rank, world_size=2, timeout=timedelta(hours=1))


if __name__ == "__main__":
    if sys.argv[1] == "peer":
        peer(int(sys.argv[2]), int(sys.argv[3]))
    found = Team.of(os.environ)
    assert found
    while True:
        found.meet(timedelta(minutes=10))
        found.part()

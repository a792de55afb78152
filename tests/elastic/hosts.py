"""Hosts on one machine: Linux network namespaces on a bridge, with a route to one port of this machine.

The bridge has a namespace too, so none of the hosts' addresses belongs to this machine. A host is connected by a veth
pair. For a bad connection, it has two tap devices instead, and this process carries the frames between them: it delays,
drops or refuses some. (The kernel's netem and netfilter could do that, but they are not built into every kernel.)
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import random
import select
import shutil
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from tests.elastic.frames import refusal, way

TUN = "/dev/net/tun"
TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454CA, 0x0002, 0x1000  # linux/if_tun.h
FRAME_BYTES = 65536

CLONE_NEWNET = 0x40000000  # linux/sched.h
T = TypeVar("T")

NET = f"10.231.{os.getpid() % 250}"
GATEWAY = f"{NET}.1"


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


def why_not() -> str:
    """Return why this machine can't have hosts, or an empty string."""
    if sys.platform != "linux" or not shutil.which("ip"):
        return "needs Linux and iproute2"
    if not os.access(TUN, os.W_OK):
        return f"needs {TUN}"
    try:
        ip("netns", "add", f"ty{os.getpid()}try")
        ip("netns", "delete", f"ty{os.getpid()}try")
    except subprocess.CalledProcessError as error:
        return f"network namespaces are not permitted here: {error.stderr.decode().strip()}"
    return ""


@dataclass(frozen=True)
class Host:
    """A network namespace with its own address. `prefix` goes before a command to run the command there."""

    name: str
    address: str

    @property
    def prefix(self) -> list[str]:
        return ["ip", "netns", "exec", self.name]

    def unplug(self) -> None:
        """Take the network device down. No packet is sent, and no peer is notified."""
        ip("-n", self.name, "link", "set", "eth0", "down")

    def plug(self) -> None:
        """Bring the network device up again."""
        ip("-n", self.name, "link", "set", "eth0", "up")

    def lose_the_way_to(self, *others: Host) -> None:
        """Drop packets from this host to the others silently. Packets from the others still arrive."""
        for other in others:
            ip("-n", self.name, "route", "add", "blackhole", f"{other.address}/32")


Way = tuple[str, str]


@dataclass(frozen=True)
class Quality:
    """The quality of a connection in each direction: seconds of delay, its jitter, and the share of lost frames.

    Frames from one address to another can also all be lost, or be refused as by a firewall.
    """

    delay: float = 0.0
    jitter: float = 0.0
    loss: float = 0.0
    lost: set[Way] = field(default_factory=set)
    refused: set[Way] = field(default_factory=set)

    def cut(self, ones: list[Host], others: list[Host], refuse: bool = False, one_way: bool = False) -> None:
        """Block all packets between both groups of hosts, or, with `one_way`, only those from `ones` to `others`."""
        ways = {(one.address, other.address) for one in ones for other in others}
        ways |= set() if one_way else {(other, one) for one, other in ways}
        (self.refused if refuse else self.lost).update(ways)

    def heal(self) -> None:
        """Let all packets pass again."""
        self.lost.clear()
        self.refused.clear()


@contextlib.contextmanager
def hosts(count: int, quality: Quality | None = None) -> Iterator[list[Host]]:
    """Yield `count` hosts that reach each other and GATEWAY, over connections of this quality if one is given."""
    hub = f"ty{os.getpid()}"
    made: list[Host] = []
    with contextlib.ExitStack() as wires, _bridge(hub, made):
        for number in range(count):
            name = f"{hub}n{number}"
            ip("netns", "add", name)
            if quality:
                wires.enter_context(_bad_wire(hub, name, quality))
            else:
                ip("-n", hub, "link", "add", f"{name}v", "type", "veth", "peer", "name", "eth0", "netns", name)
            made.append(_host(hub, name, f"{NET}.{number + 11}"))
        yield made


@contextlib.contextmanager
def _bridge(hub: str, made: list[Host]) -> Iterator[None]:
    ip("netns", "add", hub)
    try:
        ip("-n", hub, "link", "add", "name", "hub", "type", "bridge")
        ip("-n", hub, "address", "add", f"{GATEWAY}/24", "dev", "hub")
        ip("-n", hub, "link", "set", "hub", "up")
        yield
    finally:
        for host in made:  # the links first: a namespace goes when the kernel has closed the last connection in it
            ip("-n", hub, "link", "delete", f"{host.name}v")
            ip("netns", "delete", host.name)
        ip("netns", "delete", hub)


def _host(hub: str, name: str, address: str) -> Host:
    ip("-n", hub, "link", "set", f"{name}v", "master", "hub", "up")
    ip("-n", name, "address", "add", f"{address}/24", "dev", "eth0")
    ip("-n", name, "link", "set", "eth0", "up")
    ip("-n", name, "link", "set", "lo", "up")
    return Host(name, address)


def hub() -> Host:
    """Return the host with the address GATEWAY, which is never cut off. Valid only while there are hosts."""
    return Host(f"ty{os.getpid()}", GATEWAY)


def _within(namespace: str, make: Callable[[], T]) -> T:
    """Return what `make` makes in that network. A socket stays in the network where it was made."""
    made: list[T] = []

    def enter() -> None:
        with Path(f"/run/netns/{namespace}").open() as file:
            if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), "setns")
        made.append(make())

    thread = threading.Thread(target=enter)  # which ends there; this one stays here
    thread.start()
    thread.join()
    return made[0]


def _tap(name: str) -> int:
    """Open a network device. Its frames are read from and written to this file."""
    file = os.open(TUN, os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(file, TUNSETIFF, struct.pack("16sH", name.encode(), IFF_TAP | IFF_NO_PI))
    return file


@contextlib.contextmanager
def _bad_wire(hub: str, name: str, quality: Quality) -> Iterator[None]:
    """Create two devices (the host's eth0 and its end at the bridge), and a thread that carries frames between
    them."""
    ends = (_tap(f"{name}v"), _tap(f"{name}i"))
    ip("link", "set", f"{name}i", "netns", name, "name", "eth0")
    ip("link", "set", f"{name}v", "netns", hub)
    over = threading.Event()
    thread = threading.Thread(target=_carry, args=(ends, quality, over), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        for end in ends:
            os.close(end)


def _carry(ends: tuple[int, int], quality: Quality, over: threading.Event) -> None:
    """Carry frames between both ends. The second end is the host's."""
    dice = random.Random(1)
    late: list[tuple[float, int, bytes]] = []  # when it is due, at which end, what
    while not over.is_set():
        wait = min((due for due, _, _ in late), default=time.monotonic() + 0.1) - time.monotonic()
        for end in select.select(ends, [], [], max(0.0, wait))[0]:
            with contextlib.suppress(OSError):  # a device that is down
                frame = os.read(end, FRAME_BYTES)
                passage = way(frame) if end == ends[1] else None
                if passage in quality.refused and (answer := refusal(frame)):
                    late.append((time.monotonic(), end, answer))
                elif passage not in quality.lost | quality.refused and dice.random() >= quality.loss:
                    delay = dice.uniform(quality.delay - quality.jitter, quality.delay + quality.jitter)
                    late.append((time.monotonic() + delay, ends[1] if end == ends[0] else ends[0], frame))
        now = time.monotonic()
        for _, end, frame in sorted(each for each in late if each[0] <= now):
            with contextlib.suppress(OSError):
                os.write(end, frame)
        late = [each for each in late if each[0] > now]


@contextlib.contextmanager
def forwarded(port: int) -> Iterator[int]:
    """Yield a port of GATEWAY that forwards connections to `port` of 127.0.0.1. Valid only while there are hosts."""
    with _within(f"ty{os.getpid()}", lambda: socket.create_server((GATEWAY, 0))) as server:
        threading.Thread(target=_accept, args=(server, port), daemon=True).start()
        yield int(server.getsockname()[1])


def _accept(server: socket.socket, port: int) -> None:
    while server.fileno() >= 0:
        # accept also raises what the network has to say of the caller, as EHOSTUNREACH of one that is unplugged
        # (accept(2), "Error handling"); the next caller has nothing to do with that.
        with contextlib.suppress(OSError):
            client, _ = server.accept()
            target = socket.create_connection(("127.0.0.1", port))
            for source, sink in ((client, target), (target, client)):
                threading.Thread(target=_pump, args=(source, sink), daemon=True).start()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError), source, sink:
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)

"""Hosts on one machine: Linux network namespaces on a bridge, and a way from there to a port of this machine.

A host's wire is a veth pair, or, if it is to be a bad one, two tap devices between which this process carries the
frames, some of them late and some not at all. (The kernel's netem does that too, where it was built in.)
"""

from __future__ import annotations

import contextlib
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
from collections.abc import Iterator
from dataclasses import dataclass

TUN = "/dev/net/tun"
TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454CA, 0x0002, 0x1000  # linux/if_tun.h
FRAME_BYTES = 65536

NET = f"10.231.{os.getpid() % 250}"
GATEWAY = f"{NET}.1"


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


def why_not() -> str:
    """Why there can be no hosts on this machine, or an empty string."""
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
    """A network namespace with an address of its own. `prefix` goes before the command that is to run there."""

    name: str
    address: str

    @property
    def prefix(self) -> list[str]:
        return ["ip", "netns", "exec", self.name]

    def unplug(self) -> None:
        """Take its network away: nothing is sent, and nobody is told."""
        ip("-n", self.name, "link", "set", "eth0", "down")

    def plug(self) -> None:
        """Give it back."""
        ip("-n", self.name, "link", "set", "eth0", "up")

    def lose_the_way_to(self, *others: Host) -> None:
        """Drop what it sends to these, and tell nobody; what they send still arrives."""
        for other in others:
            ip("-n", self.name, "route", "add", "blackhole", f"{other.address}/32")


@dataclass(frozen=True)
class Quality:
    """Of a wire, in each direction: seconds that a frame takes, give or take `jitter`, and the share that is lost."""

    delay: float
    jitter: float
    loss: float


@contextlib.contextmanager
def hosts(count: int, quality: Quality | None = None) -> Iterator[list[Host]]:
    """So many hosts that reach each other and GATEWAY, which is this machine; over bad wires if a quality is given."""
    bridge = f"ty{os.getpid()}"
    made: list[Host] = []
    with contextlib.ExitStack() as wires, _bridge(bridge, made):
        for number in range(count):
            name = f"{bridge}n{number}"
            ip("netns", "add", name)
            if quality:
                wires.enter_context(_bad_wire(name, quality))
            else:
                ip("link", "add", f"{name}v", "type", "veth", "peer", "name", "eth0", "netns", name)
            made.append(_host(bridge, name, f"{NET}.{number + 11}"))
        yield made


@contextlib.contextmanager
def _bridge(bridge: str, made: list[Host]) -> Iterator[None]:
    try:
        ip("link", "add", "name", bridge, "type", "bridge")
        ip("address", "add", f"{GATEWAY}/24", "dev", bridge)
        ip("link", "set", bridge, "up")
        yield
    finally:
        for host in made:  # the links first: a namespace goes when the kernel has closed the last connection in it
            ip("link", "delete", f"{host.name}v")
            ip("netns", "delete", host.name)
        ip("link", "delete", bridge)


def _host(bridge: str, name: str, address: str) -> Host:
    ip("link", "set", f"{name}v", "master", bridge, "up")
    ip("-n", name, "address", "add", f"{address}/24", "dev", "eth0")
    ip("-n", name, "link", "set", "eth0", "up")
    ip("-n", name, "link", "set", "lo", "up")
    return Host(name, address)


def _tap(name: str) -> int:
    """A network device whose frames are read from and written to this file."""
    file = os.open(TUN, os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(file, TUNSETIFF, struct.pack("16sH", name.encode(), IFF_TAP | IFF_NO_PI))
    return file


@contextlib.contextmanager
def _bad_wire(name: str, quality: Quality) -> Iterator[None]:
    """Two devices, the host's eth0 and its end at the bridge, and a thread that carries frames between them."""
    ends = (_tap(f"{name}v"), _tap(f"{name}i"))
    ip("link", "set", f"{name}i", "netns", name, "name", "eth0")
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
    dice = random.Random(1)
    late: list[tuple[float, int, bytes]] = []  # when it is due, at which end, what
    while not over.is_set():
        wait = min((due for due, _, _ in late), default=time.monotonic() + 0.1) - time.monotonic()
        for end in select.select(ends, [], [], max(0.0, wait))[0]:
            with contextlib.suppress(OSError):  # a device that is down
                frame = os.read(end, FRAME_BYTES)
                if dice.random() >= quality.loss:
                    due = time.monotonic() + dice.uniform(
                        quality.delay - quality.jitter, quality.delay + quality.jitter
                    )
                    late.append((due, ends[1] if end == ends[0] else ends[0], frame))
        now = time.monotonic()
        for _, end, frame in sorted(each for each in late if each[0] <= now):
            with contextlib.suppress(OSError):
                os.write(end, frame)
        late = [each for each in late if each[0] > now]


@contextlib.contextmanager
def forwarded(port: int) -> Iterator[int]:
    """A port of GATEWAY whose connections go to `port` of 127.0.0.1."""
    with socket.create_server((GATEWAY, 0)) as server:
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

"""Hosts on one machine: Linux network namespaces on a bridge, and a way from there to a port of this machine."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass

NET = f"10.231.{os.getpid() % 250}"
GATEWAY = f"{NET}.1"


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)


def why_not() -> str:
    """Why there can be no hosts on this machine, or an empty string."""
    if sys.platform != "linux" or not shutil.which("ip"):
        return "needs Linux and iproute2"
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

    def worsen(self, *quality: str) -> str:
        """Delay and lose what it sends, in netem's words; say why that can't be done here, or nothing."""
        argv = ["ip", "netns", "exec", self.name, "tc", "qdisc", "add", "dev", "eth0", "root", "netem", *quality]
        done = subprocess.run(argv, capture_output=True, text=True)
        return f"netem is not to be had here: {done.stderr.strip()}" if done.returncode else ""

    def lose_the_way_to(self, *others: Host) -> None:
        """Drop what it sends to these, and tell nobody; what they send still arrives."""
        for other in others:
            ip("-n", self.name, "route", "add", "blackhole", f"{other.address}/32")


@contextlib.contextmanager
def hosts(count: int) -> Iterator[list[Host]]:
    """So many hosts that reach each other and GATEWAY, which is this machine."""
    bridge = f"ty{os.getpid()}"
    made: list[Host] = []
    try:
        ip("link", "add", "name", bridge, "type", "bridge")
        ip("address", "add", f"{GATEWAY}/24", "dev", bridge)
        ip("link", "set", bridge, "up")
        for number in range(count):
            made.append(_host(bridge, f"{bridge}n{number}", f"{NET}.{number + 11}"))
        yield made
    finally:
        for host in made:  # the links first: a namespace goes when the kernel has closed the last connection in it
            ip("link", "delete", f"{host.name}v")
            ip("netns", "delete", host.name)
        ip("link", "delete", bridge)


def _host(bridge: str, name: str, address: str) -> Host:
    ip("netns", "add", name)
    ip("link", "add", f"{name}v", "type", "veth", "peer", "name", "eth0", "netns", name)
    ip("link", "set", f"{name}v", "master", bridge, "up")
    ip("-n", name, "address", "add", f"{address}/24", "dev", "eth0")
    ip("-n", name, "link", "set", "eth0", "up")
    ip("-n", name, "link", "set", "lo", "up")
    return Host(name, address)


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

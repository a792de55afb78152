"""The program of `admin smoke` on the nodes. The program tries one check after another, and prints a line of JSON for
each.

    probe.py pair FOLDER     both nodes of a job: a token, a file that one node writes and the other reads, a rename
    probe.py listener        a job that waits for a caller
    probe.py caller          another job, which calls the address in PEER
    probe.py evicted FOLDER  a job that asks whether its node will be evicted; with WAIT it stays until the eviction

The program needs only Python's own modules, and PyTorch to check GPUs, because it travels as text in the job's command.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import socket
import ssl
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

SEEN_SECONDS, CALL_SECONDS = 180.0, 600.0


def say(check: str, ok: bool, detail: str) -> None:
    print("smoke", json.dumps({"check": check, "ok": ok, "detail": detail, "time": time.time()}), flush=True)  # noqa: T201 (its only way to say something)


def token() -> None:
    """Ask for a token as azure-identity does on a node of Azure ML: with the client id that the node was given."""
    endpoint, client_id = os.environ.get("MSI_ENDPOINT"), os.environ.get("DEFAULT_IDENTITY_CLIENT_ID")
    if not endpoint or not client_id:
        say("token", False, f"MSI_ENDPOINT is {endpoint!r}, DEFAULT_IDENTITY_CLIENT_ID {client_id!r}")
        return
    url = f"{endpoint}?api-version=2017-09-01&resource=https://storage.azure.com&clientid={client_id}"
    trust = ssl.create_default_context(cafile=os.environ.get("REQUESTS_CA_BUNDLE"))
    request = urllib.request.Request(url, headers={"secret": os.environ.get("MSI_SECRET", "")})  # noqa: S310 (the node's)
    try:
        with urllib.request.urlopen(request, timeout=30, context=trust) as answer:  # noqa: S310
            content = json.load(answer)
        say("token", bool(content.get("access_token")), "the node's identity gets a token for storage")
    except (OSError, ValueError) as error:
        say("token", False, f"{type(error).__name__}: {error}")


def gpu() -> None:
    """Report whether PyTorch sees the GPUs that the node's VM size has, with the versions of the driver and of CUDA
    in PyTorch's build."""
    torch: Any = importlib.import_module("torch")  # the trainers' environment has PyTorch
    version = Path("/proc/driver/nvidia/version")
    driver = re.search(r"Kernel Module.*?\s(\d+(?:\.\d+)+)", version.read_text()) if version.is_file() else None
    expected, seen = int(os.environ.get("TRAINYARD_GPUS") or 0), torch.cuda.device_count()
    name = torch.cuda.get_device_name(0) if seen else "no GPU"
    words = f"{seen} seen of {expected}: {name}, driver {driver[1] if driver else 'none'}, PyTorch {torch.__version__}"
    say("gpu", seen >= expected or bool(os.environ.get("TRAINYARD_LOCAL_NODES")), f"{words}, CUDA {torch.version.cuda}")


def pair(folder: Path) -> None:
    rank = int(os.environ.get("NODE_RANK") or os.environ.get("RANK") or 0)
    if rank == 0:
        token()
        gpu()
        (folder / "first.tmp").write_text(str(time.time()))
        (folder / "first.tmp").rename(folder / "first")
        say("rename", (folder / "first").is_file(), "a file is renamed on the mount")
        _seen(folder / "second", "back")
        return
    _seen(folder / "first", "mount")
    (folder / "second").write_text(str(time.time()))


def _seen(file: Path, check: str) -> None:
    deadline = time.time() + SEEN_SECONDS
    while not file.is_file() or not file.read_text():
        if time.time() > deadline:
            say(check, False, f"{file.name} was not seen within {SEEN_SECONDS:g} s")
            return
        list(file.parent.iterdir())  # some mounts refresh only for a listing
        time.sleep(0.5)
    say(check, True, f"seen {max(0.0, time.time() - float(file.read_text())):.1f} s after it was written")


def listener() -> None:
    address = os.environ.get("SMOKE_ADDRESS") or _own_address()
    with socket.create_server((address, 0)) as server:
        print("smoke-address", f"{address}:{server.getsockname()[1]}", flush=True)  # noqa: T201 (its only way to say something)
        server.settimeout(CALL_SECONDS)
        try:
            caller, peer = server.accept()
            caller.close()
            say("called", True, f"called from {peer[0]}")
        except TimeoutError:
            say("called", False, f"no call arrived within {CALL_SECONDS:g} s")


def _own_address() -> str:
    """Return the address from which a packet to the internet would be sent. No packet is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))
        return str(probe.getsockname()[0])


def caller() -> None:
    host, _, port = os.environ["PEER"].rpartition(":")
    try:
        socket.create_connection((host, int(port)), 30).close()
        say("traffic", True, "a job reaches a port of another job")
    except OSError as error:
        say("traffic", False, f"{host}:{port}: {error}")


def evicted(folder: Path) -> None:
    """Ask the metadata service for Scheduled Events. A job that replaces an evicted job reports this and ends."""
    if (folder / "begun").is_file():
        say("again", True, "another job went on after the first had lost its node")
        return
    (folder / "begun").write_text("x")
    if _events("events", 180.0, announced=False) and os.environ.get("WAIT"):
        _events("announced", CALL_SECONDS, announced=True)
        time.sleep(CALL_SECONDS)


def _events(check: str, patience: float, *, announced: bool) -> bool:
    """Query Scheduled Events until the service answers; with `announced`, until an answer contains an event. The first
    answer may take two minutes. Returns whether one came within `patience` seconds."""
    address = os.environ.get("NODE_METADATA_ENDPOINT") or "http://169.254.169.254"
    trust = ssl.create_default_context(cafile=os.environ.get("REQUESTS_CA_BUNDLE"))
    handlers = (urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=trust))
    url = f"{address}/metadata/scheduledevents?api-version=2020-07-01"
    request = urllib.request.Request(url, headers={"Metadata": "true"})  # noqa: S310 (the node's)
    deadline, fault = time.time() + patience, "no event"
    while time.time() < deadline:
        try:
            with urllib.request.build_opener(*handlers).open(request, timeout=10) as answer:
                content = json.load(answer)
            kinds = [event["EventType"] for event in content["Events"]]
            if kinds or not announced:
                say(check, True, f"incarnation {content['DocumentIncarnation']}, events {', '.join(kinds) or 'none'}")
                return True
        except (OSError, ValueError, KeyError) as error:
            fault = f"{type(error).__name__}: {error}"
        time.sleep(1)
    say(check, False, f"{fault} within {patience:g} s")
    return False


if __name__ == "__main__":
    parts: dict[str, Callable[[], None]] = {
        "pair": lambda: pair(Path(sys.argv[2])),
        "listener": listener,
        "caller": caller,
        "evicted": lambda: evicted(Path(sys.argv[2])),
    }
    parts[sys.argv[1]]()
    say("end", True, "")

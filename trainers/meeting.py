"""The meeting of a training's processes: the rank of each process, the shared store, and each process's device."""

from __future__ import annotations

import argparse
import os
import socket
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import gpu
import node_facts
import torch
import torch.distributed as dist
from ending import end_with_the_launcher

if TYPE_CHECKING:
    from elastic.worker import Team

# How long a process waits for the others, at the meeting and in every later exchange. Nodes of a cluster start minutes
# apart; a peer that is silent for longer counts as dead. A killed process closes its connections, which its peers
# notice at once; only a node that loses its power or its network is silent.
PATIENCE = timedelta(minutes=30)


@dataclass(frozen=True)
class Place:
    """The rank of this process, and the number of processes. `url` is where the processes meet: env://,
    tcp://HOST:PORT or file://PATH."""

    rank: int
    world_size: int
    url: str
    backend: str
    patience: timedelta = PATIENCE
    round: int = 0  # counts the teams of an elastic run
    team: Team | None = None  # the connection to the agent, if this process outlives its teams

    def new_group(self) -> dist.ProcessGroup:
        """Return a second gloo group of all processes, for use by a separate thread."""
        if self.team:
            return self.team.group(self.patience)
        made: dist.ProcessGroup = dist.new_group(backend="gloo", timeout=self.patience)
        return made


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add --world-size, --rank, --dist-url, --dist-backend, --dist-timeout and --device.

    torchrun and Azure ML need none of these flags.
    """
    gpu.add_arguments(parser)
    group = parser.add_argument_group("distributed", "by default from the environment that torchrun and Azure ML set")
    group.add_argument("--world-size", type=int, help="number of processes (default: WORLD_SIZE, else 1)")
    group.add_argument("--rank", type=int, help="number of this process, from 0 (default: RANK, else 0)")
    group.add_argument("--dist-url", default="env://", help="env://, tcp://HOST:PORT of rank 0, or file://PATH")
    group.add_argument("--dist-backend", choices=["gloo", "nccl"], help="default: nccl where there is a GPU")
    group.add_argument(
        "--dist-timeout",
        type=float,
        default=PATIENCE.total_seconds(),
        metavar="SECONDS",
        help="how long to wait for a silent process (default: %(default).0f)",
    )


def place(args: argparse.Namespace, environ: Mapping[str, str]) -> Place:
    """Return the place of this process, from arguments and environment. Raises ValueError, naming the flag and the
    variable, for a contradiction.

    It also raises ValueError if this node has a GPU that PyTorch can't use, unless `--device cpu` is given.
    """
    gpu.choose(args.device, environ)
    world_size = args.world_size if args.world_size is not None else _number(environ, "WORLD_SIZE", 1)
    rank = args.rank if args.rank is not None else _number(environ, "RANK", 0 if world_size == 1 else -1)
    if world_size < 1:
        raise ValueError(f"--world-size (WORLD_SIZE) must be at least 1, not {world_size}")
    if not 0 <= rank < world_size:
        raise ValueError(f"--rank (RANK) must be 0 to {world_size - 1} with {world_size} processes, not {rank}")
    meet_by_env = args.dist_url.startswith("env://")
    missing = [name for name in ("MASTER_ADDR", "MASTER_PORT") if not environ.get(name)]
    if world_size > 1 and meet_by_env and missing:
        raise ValueError(f"{missing[0]} is not set; start with torchrun, or give --dist-url tcp://HOST:PORT of rank 0")
    if args.dist_backend == "nccl" and not torch.cuda.is_available():
        raise ValueError("--dist-backend nccl needs a GPU, and there is none here; use gloo")
    if not args.dist_timeout > 0:
        raise ValueError(f"--dist-timeout must be more than 0 seconds, not {args.dist_timeout:g}")
    backend = args.dist_backend or ("nccl" if torch.cuda.is_available() else "gloo")
    return Place(rank, world_size, args.dist_url, backend, timedelta(seconds=args.dist_timeout))


def _number(environ: Mapping[str, str], name: str, default: int) -> int:
    value = environ.get(name, "")
    try:
        return int(value) if value else default
    except ValueError:
        raise ValueError(f"{name} must be a number, not {value!r}") from None


def join(place: Place) -> torch.device:
    """Wait for the other processes, and return this process's device. Raises DistError for missing processes after
    `place.patience` seconds.
    """
    end_with_the_launcher(os.environ)
    if place.rank == 0:
        node_facts.write(os.environ)
    if _meeting_host(place) in ("127.0.0.1", "localhost"):
        _stay_on_loopback()
    # NCCL cannot move CPU tensors, so the stop flag and the host names use gloo, and never wait for a GPU.
    backend = "cpu:gloo,cuda:nccl" if place.backend == "nccl" else place.backend
    rank, world_size, patience = place.rank, place.world_size, place.patience
    if world_size == 1:
        dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)
    elif place.url.startswith("env://") and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        store = _store_of_torchrun(place, os.environ)
        dist.init_process_group(backend, store=store, rank=rank, world_size=world_size, timeout=patience)
    else:
        dist.init_process_group(backend, init_method=place.url, rank=rank, world_size=world_size, timeout=patience)
    return device_of(place)


def _store_of_torchrun(place: Place, environ: Mapping[str, str]) -> dist.Store:
    """Return the store of torchrun's agent, under a prefix agreed on by only these processes.

    torchrun 2.13 keeps one store over all restarts and adds no prefix of its own. Restarted workers would find the
    addresses of dead workers, and wait for them until `patience` ends. No variable of torchrun distinguishes two starts
    in all agents alike, because a change of members does not count as a restart.
    """
    host, port = environ["MASTER_ADDR"], int(environ["MASTER_PORT"])
    store = dist.TCPStore(host, port, is_master=False, timeout=place.patience)
    mine = uuid.uuid4().hex
    if place.rank:
        store.set(f"hello/{place.rank}", mine)
        prefix = store.get(f"prefix-for/{mine}").decode()
        store.set(f"{prefix}/has/{place.rank}", "")
        return dist.PrefixStore(prefix, store)
    missing, deadline = set(range(1, place.world_size)), time.monotonic() + place.patience.total_seconds()
    while missing:
        if time.monotonic() > deadline:
            raise TimeoutError(f"ranks {sorted(missing)} did not come within {place.patience.total_seconds():.0f} s")
        for rank in [rank for rank in missing if store.check([f"hello/{rank}"])]:
            store.set(f"prefix-for/{store.get(f'hello/{rank}').decode()}", mine)  # may still answer a dead process
        missing -= {rank for rank in missing if store.check([f"{mine}/has/{rank}"])}
        time.sleep(0.01)
    return dist.PrefixStore(mine, store)


def _meeting_host(place: Place) -> str | None:
    return os.environ.get("MASTER_ADDR") if place.url.startswith("env://") else urlsplit(place.url).hostname


def _stay_on_loopback() -> None:
    """Keep gloo from resolving the host's name if all processes are on this machine, because the lookup fails
    without a network."""
    names = {name for _, name in socket.if_nameindex()} if hasattr(socket, "if_nameindex") else set()
    if loopback := names & {"lo", "lo0"}:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", loopback.pop())


def device_of(place: Place) -> torch.device:
    """Return this process's device: one GPU of this host, or a fair share of the host's cores.

    By default PyTorch uses all cores in every process. Two processes of one host then run twice as many threads as
    there are cores, and each step takes several times as long. OMP_NUM_THREADS takes precedence.
    """
    hosts: list[str] = [""] * place.world_size
    dist.all_gather_object(hosts, socket.gethostname())
    mine = hosts[place.rank]
    if torch.cuda.is_available():
        device = torch.device("cuda", hosts[: place.rank].count(mine) % torch.cuda.device_count())
        torch.cuda.set_device(device)
        return device
    if "OMP_NUM_THREADS" not in os.environ:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        torch.set_num_threads(max(1, cores // hosts.count(mine)))
    return torch.device("cpu")

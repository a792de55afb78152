"""Many processes as one: who I am, how we meet, how we stop together, and what my last line says.

A trainer runs the same lines in one process and in many. The process group exists in both cases, over gloo on
CPUs and over NCCL on GPUs, so that there is no second path to test.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import os
import signal
import socket
import sys
import time
import traceback
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, NoReturn, TextIO
from urllib.parse import urlsplit

import torch
import torch.distributed as dist
from files import DataError

if TYPE_CHECKING:
    from elastic.eviction import Watch
    from elastic.worker import Team

# Exit codes. 143 is what a shell reports for a process ended by SIGTERM (128 + 15); 75 is EX_TEMPFAIL of sysexits.h.
DONE, FAILED, BAD_DATA, NOT_NEEDED, INTERRUPTED, STOPPED = 0, 1, 2, 75, 130, 143

# How long a process waits for the others, to meet and in every exchange after that. Nodes of a cluster start
# minutes apart; a peer that is silent for longer than this is taken for dead. A process that is killed closes its
# connections, which its peers see at once; only a node that loses its power or its network is silent.
PATIENCE = timedelta(minutes=30)


class Stopped(Exception):
    """Some process got SIGTERM; every process raises this at the same step. `all_go`: none goes on elsewhere."""

    def __init__(self, text: str, all_go: bool = True) -> None:
        super().__init__(text)
        self.all_go = all_go


@dataclass(frozen=True)
class Place:
    """Where this process stands among the others. `url` is how they meet: env:// or tcp://HOST:PORT or file://PATH."""

    rank: int
    world_size: int
    url: str
    backend: str
    patience: timedelta = PATIENCE
    round: int = 0  # counts the teams of an elastic run
    team: Team | None = None  # the way to the agent, where this process outlives the teams it works in

    def new_group(self) -> dist.ProcessGroup:
        """Another gloo group of all processes, for a thread of its own."""
        if self.team:
            return self.team.group(self.patience)
        made: dist.ProcessGroup = dist.new_group(backend="gloo", timeout=self.patience)
        return made


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add --world-size, --rank, --dist-url, --dist-backend and --dist-timeout. torchrun and Azure ML need none."""
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
        help="how long a silent process is waited for (default: %(default).0f)",
    )


def place(args: argparse.Namespace, environ: Mapping[str, str]) -> Place:
    """Combine arguments and environment. Raises ValueError, naming flag and variable, if they contradict each other."""
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


def _join(place: Place) -> torch.device:
    """Join the others and give the device of this process. Raises DistError if they stay away for `place.patience`."""
    _end_with_the_launcher(os.environ)
    if _meeting_host(place) in ("127.0.0.1", "localhost"):
        _stay_on_loopback()
    # NCCL cannot move CPU tensors: the stop flag and the host names travel over gloo, and never wait for a GPU.
    backend = "cpu:gloo,cuda:nccl" if place.backend == "nccl" else place.backend
    rank, world_size, patience = place.rank, place.world_size, place.patience
    if world_size == 1:
        dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)
    elif place.url.startswith("env://") and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        store = _store_of_torchrun(place, os.environ)
        dist.init_process_group(backend, store=store, rank=rank, world_size=world_size, timeout=patience)
    else:
        dist.init_process_group(backend, init_method=place.url, rank=rank, world_size=world_size, timeout=patience)
    return _device(place)


def _store_of_torchrun(place: Place, environ: Mapping[str, str]) -> dist.Store:
    """The store of torchrun's agent, under a prefix that these processes alone have agreed on.

    torchrun 2.13 keeps one store over all restarts and adds no prefix of its own, so workers that were started again
    would find the addresses of those that died, and wait for them until `patience` ends. No variable that torchrun
    sets tells one start from the next in all agents alike: a change of members doesn't count as a restart.
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
            store.set(f"prefix-for/{store.get(f'hello/{rank}').decode()}", mine)  # may still answer one that died
        missing -= {rank for rank in missing if store.check([f"{mine}/has/{rank}"])}
        time.sleep(0.01)
    return dist.PrefixStore(mine, store)


def _end_with_the_launcher(environ: Mapping[str, str]) -> None:
    """On Linux, let the kernel kill this process when torchrun, which started it, is gone.

    Otherwise the workers of a launcher that was killed go on as members of a group that others form anew.
    """
    if sys.platform != "linux" or "TORCHELASTIC_RUN_ID" not in environ:
        return
    pr_set_pdeathsig = 1  # linux/prctl.h
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, int(signal.SIGKILL))


def _meeting_host(place: Place) -> str | None:
    return os.environ.get("MASTER_ADDR") if place.url.startswith("env://") else urlsplit(place.url).hostname


def _stay_on_loopback() -> None:
    """All processes are on this machine: keep gloo from looking up the host's name, which fails without a network."""
    names = {name for _, name in socket.if_nameindex()} if hasattr(socket, "if_nameindex") else set()
    if loopback := names & {"lo", "lo0"}:
        os.environ.setdefault("GLOO_SOCKET_IFNAME", loopback.pop())


def _device(place: Place) -> torch.device:
    """One GPU per process of this host, or a fair share of its cores.

    PyTorch takes all cores in every process. Two processes of one host then run twice as many threads as there
    are cores, and each step takes several times as long. OMP_NUM_THREADS, when set, is left to rule.
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


def all_sum(values: torch.Tensor) -> torch.Tensor:
    """Replace `values` by their sum over all processes, and return them."""
    dist.all_reduce(values)
    return values


class StopRequest:
    """SIGTERM, as a wish that all processes follow at the same step.

    Azure ML sends SIGTERM before it takes a low-priority node away and when a job is cancelled. A process that
    left at once would leave the others waiting in an exchange that never ends. With a `team` those that got none go on
    in its next round.

    Azure may also announce that it takes a node, and then kill without a SIGTERM. So all save when one node is
    announced, and go on: a job that ended by itself then would count as failed, not as one that lost its node.
    """

    def __init__(self, team: Team | None = None) -> None:
        self.received = False
        self._save_soon = False  # in all processes alike: a node is to go
        self._team = team
        self._announced = False
        self._watch: Watch | None = None

    def listen(self) -> None:
        """From now on SIGTERM only sets `received`."""
        signal.signal(signal.SIGTERM, self._note)

    def watch(self, environ: Mapping[str, str]) -> None:
        """From now on this node's end is known when Azure announces it. One process of a node asks."""
        if environ.get("LOCAL_RANK", "0") == "0":
            from elastic import eviction

            self._watch = eviction.watch(environ, self._hear)

    def end(self) -> None:
        """Ask no more whether this node is to go."""
        if self._watch:
            self._watch.stop()

    def _hear(self) -> None:
        self._announced = True

    def _note(self, _signum: int, _frame: FrameType | None) -> None:
        self.received = True

    def check(self, step: int) -> None:
        """Raise Stopped in every process if any has received SIGTERM. Every process must call this for every step.

        In a team those that got none raise RoundEnded then, and all do when members come or go.
        """
        if self._team:
            return self._check_team(self._team, step)
        # Two numbers per step: 0.2 ms between two processes of one machine. On the CPU even where training is on a GPU.
        me, announced = dist.get_rank() + 1, self._announced
        flags = torch.tensor([me if self.received else 0, me if announced else 0])
        dist.all_reduce(flags, op=dist.ReduceOp.MAX)
        by, going = flags.tolist()
        if by:
            raise Stopped(f"rank {by - 1} got SIGTERM; {step} steps were done")
        if announced:
            self._announced = False  # all know it now
        if going == me:
            write_line(
                f"rank {me - 1}: Azure takes this node away soon; a checkpoint is due at step {step}", sys.stdout
            )
        self._save_soon = self._save_soon or bool(going)
        return None

    def saves_now(self) -> bool:
        """Whether a node is to go and nothing was saved since that was known; asking takes it for saved."""
        soon, self._save_soon = self._save_soon, False
        return soon

    def _check_team(self, team: Team, step: int) -> None:
        from elastic.worker import RoundEnded

        team.tick()
        flags = torch.tensor([dist.get_rank() + 1 if self.received else 0, int(team.wanted), int(not self.received)])
        dist.all_reduce(flags, op=dist.ReduceOp.MAX)
        by, wanted, some_stay = flags.tolist()
        if self.received:
            raise Stopped(f"rank {by - 1} got SIGTERM; {step} steps were done", all_go=not some_stay)
        if by or wanted:
            raise RoundEnded(f"rank {by - 1} leaves" if by else "members come or go")


Train = Callable[[torch.device, StopRequest], str]


def run(train: Train, place: Place) -> int:
    """Join the others, call `train`, leave, print this process's last line, and return its exit code.

    0 done; 1 failed, with the traceback above the line; 2 the data cannot be used; 143 stopped by SIGTERM; 130 Ctrl-C.
    The last line of a failure goes to standard error, where Azure ML looks for the reason.
    """
    stop = StopRequest()
    try:
        result = _together(train, place, stop)
    except DataError as error:
        return _last_line(place, BAD_DATA, f"bad data: {error}")
    except Stopped as reason:
        return _last_line(place, STOPPED, f"stopped: {reason}")
    except KeyboardInterrupt:
        return _last_line(place, INTERRUPTED, "interrupted")
    except Exception as error:  # noqa: BLE001 (the outermost frame: whatever it was becomes the last line)
        if stop.received:  # the others stopped first, and an exchange with them failed
            return _last_line(place, STOPPED, "stopped: got SIGTERM")
        sys.stdout.flush()
        traceback.print_exc()
        return _last_line(place, FAILED, f"failed: {type(error).__name__}: {error}")
    return _last_line(place, DONE, f"done: {result}")


TrainInRounds = Callable[[Place, torch.device, StopRequest], str]


def run_in_rounds(train: TrainInRounds, place: Place) -> int:
    """What `run` does, for a trainer that may be called again in the same process.

    Started by `elastic.launch --in-place`, the process stays when members of the run come or go: `train` is then called
    again with another place, and has to keep what it has learned, and what it has read, from one call to the next.
    Started in any other way it is called once, with this place.
    """
    if "ELASTIC_AGENT_FD" not in os.environ:
        return run(lambda device, stop: train(place, device, stop), place)
    from elastic.worker import RunOver, Team

    _end_with_the_launcher(os.environ)
    team = Team.of(os.environ)
    assert team
    stop = StopRequest(team)
    stop.listen()
    code, here = FAILED, place
    try:
        result = ""
        while not result:
            here = _next_place(team, place, stop)
            result = _one_round(train, here, stop)
        code, text = DONE, f"done: {result}"
    except DataError as error:
        code, text = BAD_DATA, f"bad data: {error}"
    except Stopped as reason:
        code, text = STOPPED, f"stopped: {reason}"
    except RunOver as over:
        code, text = NOT_NEEDED, f"not needed: the run is over: {over}"
    except Exception as error:  # noqa: BLE001 (the outermost frame: whatever it was becomes the last line)
        traceback.print_exc()
        text = f"failed: {type(error).__name__}: {error}"
    _last_line(here, code, text)
    team.say_last(code, f"rank {here.rank}: {' '.join(text.split())}")
    return code


def _next_place(team: Team, place: Place, stop: StopRequest) -> Place:
    def leave(_number: int, _frame: FrameType | None) -> None:
        raise Stopped("got SIGTERM before there was work")

    if stop.received:
        raise Stopped("got SIGTERM")
    signal.signal(signal.SIGTERM, leave)  # nobody waits for this process, so it need not wait for a step
    try:
        at = team.meet(place.patience)
    finally:
        stop.listen()
    return replace(place, rank=at.rank, world_size=at.world_size, backend="gloo", round=at.round, team=team)


def _one_round(train: TrainInRounds, here: Place, stop: StopRequest) -> str:
    """Train in one team. Returns what the last line says, or nothing if the team meets again."""
    assert here.team
    try:
        return train(here, _device(here), stop)
    except Exception as error:
        traceback.clear_frames(error.__traceback__)  # they hold the model's wrapper, and with it the group
        if not here.team.lost_peer(error):
            raise
        if stop.received:
            raise Stopped("got SIGTERM", all_go=False) from None
        why = " ".join(str(error).split())
        write_line(f"rank {here.rank} of {here.world_size}: round {here.round} is over: {why[:160]}", sys.stdout)
        return ""
    finally:
        here.team.part()


def _together(train: Train, place: Place, stop: StopRequest) -> str:
    """Train inside the process group, and leave it when nothing of the training is alive.

    The order matters. DistributedDataParallel holds the group; if it is the last to let go, the group's destructor
    joins gloo's threads while it keeps the interpreter's lock, which such a thread may wait for: the process hangs.
    """
    try:
        device = _join(place)
        stop.listen()
        stop.watch(os.environ)
        return train(device, stop)
    except BaseException as error:
        traceback.clear_frames(error.__traceback__)  # an error keeps the locals of `train`, and with them the model
        raise
    finally:
        stop.end()
        if dist.is_initialized():
            dist.destroy_process_group()


def leave(code: int) -> NoReturn:
    """End this process at once with `code`, as a trainer's last act. Nothing registered with atexit runs.

    Gloo's threads outlive the group (torch 2.13). One that lets go of its last tensor while the interpreter takes
    itself down is refused the interpreter's lock, and aborts the process (SIGABRT) after all work was done.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _last_line(place: Place, code: int, text: str) -> int:
    sys.stdout.flush()
    line = f"rank {place.rank}: {' '.join(text.split())}"
    write_line(line, sys.stderr if code else sys.stdout)
    if code and (file := os.environ.get("TORCHELASTIC_ERROR_FILE")):  # torchrun repeats it as this process's last words
        facts = {"message": {"message": line, "extraInfo": {"py_callstack": "", "timestamp": str(int(time.time()))}}}
        with contextlib.suppress(OSError):
            Path(file).write_text(json.dumps(facts))
    return code


def write_line(text: str, stream: TextIO) -> None:
    """Write a line in one piece: `print` sends the line's end on its own, and processes that share a log mix them."""
    stream.write(f"{text}\n")
    stream.flush()

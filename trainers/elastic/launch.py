"""torchrun with a rendezvous through an Azure table, for a folder of code that is not installed.

    python -m elastic.launch --nnodes 1:4 --rdzv-endpoint https://ACCOUNT.table.core.windows.net --rdzv-id RUN \\
        --max-restarts 100 [--in-place] train.py ...

Arguments and PET_* variables are those of torchrun. With --in-place (PET_IN_PLACE=1) the workers keep running when the
members change, for scripts that support it (worker.py). Without --in-place, torchrun's agent restarts the workers.

Two defaults differ: --rdzv-backend is azure-table, and all members are assumed to have the same number of workers
(TORCH_ELASTIC_WORKER_IDENTICAL=0 if they differ).

The last line and the exit code state how this member ended, and why:

    0    done: every worker of this member ended with 0
    2    bad arguments, or the trainer's own 2: bad data
    75   not needed, or not now: the run was over, too few nodes joined, the table was unreachable, or SIGTERM arrived
         before the work
    143  stopped by SIGTERM (130 by Ctrl-C), after the workers had time to save
    any  other code is that of the worker that failed first; 128 + the signal's number if a signal ended it
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import NamedTuple

NOT_NOW = 75  # EX_TEMPFAIL of sysexits.h
LEFT = "left: {} came before this member had work"


def _leave_early(number: int, _frame: FrameType | None) -> None:
    """End this process during the import of PyTorch, which takes seconds. No work has begun yet that needs an
    orderly end."""
    os.write(2, f"member: {LEFT.format(signal.Signals(number).name)}\n".encode())
    os._exit(NOT_NOW)


if __name__ == "__main__":
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, _leave_early)

from torch.distributed import run as torchrun
from torch.distributed.elastic.agent.server.api import RunResult, WorkerGroup, WorkerState
from torch.distributed.elastic.agent.server.local_elastic_agent import LocalElasticAgent
from torch.distributed.elastic.multiprocessing.api import SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError, ProcessFailure
from torch.distributed.elastic.rendezvous.api import (
    RendezvousClosedError,
    RendezvousConnectionError,
    RendezvousParameters,
    RendezvousTimeoutError,
    rendezvous_handler_registry,
)
from torch.distributed.launcher import api as launcher

from . import eviction
from .agent import Agent, Job
from .errors import Unreachable
from .handler import NAME, AzureTableRendezvous, create

DONE, FAILED, BAD_ARGUMENTS = 0, 1, 2
STOPPED = 143
HOLD_SECONDS = 300.0  # Azure removes a node half a minute after the announcement
TELLING = (2, 143)  # a worker's exit codes that mean more than a lost peer


class Ending(NamedTuple):
    """How a member ended: its exit code and the reason. `left`: a signal arrived before the member had work."""

    code: int
    why: str
    left: bool = False


def main(argv: list[str] | None = None) -> int:
    """Run one member of the run, print the last line, and return the exit code."""
    args = _arguments(sys.argv[1:] if argv is None else argv)
    watch = eviction.watch(os.environ, _announced)
    if watch:
        os.environ[eviction.ENDPOINT] = "off"  # the agent informs the workers
    ending = member(args)
    why = ending.why
    if watch:
        watch.stop()
        if watch.seen.is_set() and (ending.code == STOPPED or ending.left):
            why = _wait_for_the_end(why)
    print(f"member: {why}", file=sys.stderr, flush=True)
    return ending.code


def _announced() -> None:
    """Leave the team after an announced eviction, as after a SIGTERM, while there is still time."""
    print("member: Azure takes this node away soon; this member leaves", file=sys.stderr, flush=True)
    os.kill(os.getpid(), signal.SIGTERM)


def _wait_for_the_end(why: str) -> str:
    """Wait until Azure removes the node. Azure ML restarts a job after the loss of its node, but not an ended job."""
    gone = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: gone.set())
    print("member: left the others; waiting for the node to be taken", file=sys.stderr, flush=True)
    if gone.wait(HOLD_SECONDS):
        return f"{why}; the node was announced to go"
    return f"{why}; the node was announced to go, and still is here after {HOLD_SECONDS:.0f} s"


def _arguments(argv: list[str]) -> argparse.Namespace:
    parser = torchrun.get_args_parser()
    parser.set_defaults(rdzv_backend=os.environ.get("PET_RDZV_BACKEND", NAME))
    in_place = os.environ.get("PET_IN_PLACE", "0") == "1"
    parser.add_argument("--in-place", action="store_true", default=in_place, help="workers stay when members change")
    return parser.parse_args(argv)


def member(args: argparse.Namespace) -> Ending:
    """Join the run, work until the run or this member ends, and return the exit code and the reason."""
    made: list[AzureTableRendezvous] = []

    def make(params: RendezvousParameters) -> AzureTableRendezvous:
        made.append(create(params))
        made[0].program, made[0].arguments = _program(args)
        return made[0]

    rendezvous_handler_registry._registry[NAME] = make  # replaces the installed package's, if any
    os.environ.setdefault("TORCH_ELASTIC_WORKER_IDENTICAL", "1")
    for name in ("SIGTERM", "SIGINT"):  # PyTorch's agent handles signals only after its first worker has started
        signal.signal(signal.Signals[name], _raise)
    try:
        return _in_place(args, make) if args.in_place else _by_torchrun(args, made)
    except RendezvousClosedError as error:
        return Ending(NOT_NOW, f"not needed: run {args.rdzv_id} is over: {error}")
    except RendezvousTimeoutError as error:
        return Ending(NOT_NOW, f"gave up: too few members of run {args.rdzv_id} came in time. {error}".strip())
    except RendezvousConnectionError as error:
        passing = isinstance(error.__cause__, Unreachable)
        return Ending(NOT_NOW, f"gave up: {error}") if passing else Ending(FAILED, f"failed: {error}")
    except (ValueError, AssertionError) as error:  # torchrun asserts what its arguments must be
        return Ending(BAD_ARGUMENTS, f"bad arguments: {error}")
    except SignalException as error:  # before there was an agent
        return _stopped(error, worked=False)
    except Exception as error:  # noqa: BLE001 - whatever it was, the last line and the code have to say so
        traceback.print_exc()
        return Ending(FAILED, f"failed: {type(error).__name__}: {error}")


def _program(args: argparse.Namespace) -> tuple[str, str]:
    """Return the workers' program, and a digest of its arguments. Both are equal wherever a node stores its files."""
    name, script = args.training_script, Path(args.training_script)
    if not args.module and script.is_file():
        name = f"{script.name} ({_digest(script.read_bytes())})"
    given = [re.sub(r"^(-[\w-]+=)?(/|[A-Za-z]:\\).*", r"\1/", argument) for argument in args.training_script_args]
    return name, _digest(json.dumps(given).encode())


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:8]


def _by_torchrun(args: argparse.Namespace, made: list[AzureTableRendezvous]) -> Ending:
    """Run PyTorch's own agent, which restarts the workers after each change of members, and ends at once if a
    worker exits with 2."""
    launcher.LocalElasticAgent = _Agent  # type: ignore[misc]
    try:
        torchrun.run(args)  # type: ignore[no-untyped-call]
        return Ending(DONE, "done: all its workers ended with 0")
    except ChildFailedError as error:
        return _failure(error)
    except SignalException as error:
        for handler in made:
            handler.leave()
        return _stopped(error, worked=any(handler.worked for handler in made))
    finally:
        launcher.LocalElasticAgent = LocalElasticAgent  # type: ignore[misc]


class _Agent(LocalElasticAgent):
    """torchrun's agent, except that a worker's exit code 2 (bad data, bad arguments) is final, because another try
    would fail too."""

    def _monitor_workers(self, worker_group: WorkerGroup) -> RunResult:
        result: RunResult = super()._monitor_workers(worker_group)
        if result.state == WorkerState.FAILED and BAD_ARGUMENTS in [each.exitcode for each in result.failures.values()]:
            self._remaining_restarts = 0
        return result


def _in_place(args: argparse.Namespace, make: Callable[[RendezvousParameters], AzureTableRendezvous]) -> Ending:
    """Run Trainyard's own agent, whose workers stay alive between rounds."""
    config, entry, arguments = torchrun.config_from_args(args)
    if not isinstance(entry, str):
        raise ValueError("--in-place runs a script or a module, with an interpreter")
    params = RendezvousParameters(
        NAME,
        config.rdzv_endpoint,
        config.run_id,
        config.min_nodes,
        config.max_nodes,
        config.local_addr,
        **config.rdzv_configs,
    )
    handler = make(params)
    handler.workers = config.nproc_per_node
    job = Job([entry, *arguments], config.nproc_per_node, config.max_restarts, config.run_id)
    agent = Agent(job, handler.member)
    try:
        return Ending(*agent.run())
    except SignalException as error:
        agent.stop(error.sigval)
        return _stopped(error, worked=agent.worked)
    finally:
        agent.end()
        handler.leave()


def _raise(number: int, _frame: FrameType | None) -> None:
    received = signal.Signals(number)
    raise SignalException(f"got {received.name}", received)


def _failure(error: ChildFailedError) -> Ending:
    """Return the exit code of the failed workers in a shell's form, and the failed worker."""
    print(error, file=sys.stderr)
    first, _ = error.get_first_failure()
    codes = {rank: _code(each.exitcode) for rank, each in error.failures.items()}
    rank = next((rank for code in TELLING for rank in codes if codes[rank] == code), first)
    failure = error.failures[rank]
    said = _said(failure)
    return Ending(codes[rank], f"worker failed: rank {rank} (process {failure.pid}) ended with {codes[rank]}{said}")


def _said(failure: ProcessFailure) -> str:
    """Return the worker's last line, if the worker left a line for the agent."""
    words = failure.error_file_data.get("message")  # PyTorch's own text otherwise
    return f": {words['message']}" if isinstance(words, dict) else ""


def _code(status: int) -> int:
    return status if status >= 0 else 128 - status


def _stopped(error: SignalException, worked: bool) -> Ending:
    name = signal.Signals(error.sigval).name
    if not worked:
        return Ending(NOT_NOW, LEFT.format(name), left=True)
    return Ending(128 + error.sigval, f"stopped by {name}; the others go on without this member")


if __name__ == "__main__":
    ended = main()
    sys.stdout.flush()
    os._exit(ended)  # PyTorch's stores and threads do not always survive the interpreter's end

"""Runs several processes as one training: the processes join, train, stop together, and report the result in a last
line.

A trainer runs the same code in one process and in many. There is always a process group (gloo on CPUs, NCCL on GPUs),
so only one code path has to be tested.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import replace
from types import FrameType
from typing import TYPE_CHECKING

import node_facts
import torch
import torch.distributed as dist
from ending import (
    BAD_DATA,
    DONE,
    FAILED,
    INTERRUPTED,
    NOT_NEEDED,
    STOPPED,
    end_with_the_launcher,
    last_line,
    leave,
    write_line,
)
from files import DataError
from meeting import Place, add_arguments, device_of, join, place
from stopping import Stopped, StopRequest

if TYPE_CHECKING:
    from elastic.worker import Team

__all__ = [
    "Place",
    "StopRequest",
    "Stopped",
    "add_arguments",
    "all_sum",
    "leave",
    "place",
    "run",
    "run_in_rounds",
    "write_line",
]


def all_sum(values: torch.Tensor) -> torch.Tensor:
    """Replace `values` by the sum over all processes, and return the sum."""
    dist.all_reduce(values)
    return values


Train = Callable[[torch.device, StopRequest], str]


def run(train: Train, place: Place) -> int:
    """Join the other processes, call `train`, leave the group, print this process's last line, and return the exit
    code.

    0 done; 1 failed, with the traceback above the line; 2 the data cannot be used; 143 stopped by SIGTERM; 130 Ctrl-C.
    The last line of a failure goes to standard error, where Azure ML looks for the reason.
    """
    stop = StopRequest()
    try:
        result = _together(train, place, stop)
    except DataError as error:
        return last_line(place.rank, BAD_DATA, f"bad data: {error}")
    except Stopped as reason:
        return last_line(place.rank, STOPPED, f"stopped: {reason}")
    except KeyboardInterrupt:
        return last_line(place.rank, INTERRUPTED, "interrupted")
    except Exception as error:  # noqa: BLE001 (the outermost frame: whatever it was becomes the last line)
        if stop.received:  # the others stopped first, so an exchange with them failed
            return last_line(place.rank, STOPPED, "stopped: got SIGTERM")
        sys.stdout.flush()
        traceback.print_exc()
        return last_line(place.rank, FAILED, f"failed: {type(error).__name__}: {error}")
    return last_line(place.rank, DONE, f"done: {result}")


TrainInRounds = Callable[[Place, torch.device, StopRequest], str]


def run_in_rounds(train: TrainInRounds, place: Place) -> int:
    """Like `run`, for a trainer with possibly several calls in one process.

    Under `elastic.launch --in-place`, the process stays alive when members of the run join or leave. `train` is then
    called again with a new place, and must keep its state and its data between the calls. Under any other launcher,
    `train` is called once with this place.
    """
    if "ELASTIC_AGENT_FD" not in os.environ:
        return run(lambda device, stop: train(place, device, stop), place)
    from elastic.worker import RunOver, Team

    end_with_the_launcher(os.environ)
    node_facts.write(os.environ)  # each member is a separate job
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
    last_line(here.rank, code, text)
    team.say_last(code, f"rank {here.rank}: {' '.join(text.split())}")
    return code


def _next_place(team: Team, place: Place, stop: StopRequest) -> Place:
    def leave(_number: int, _frame: FrameType | None) -> None:
        raise Stopped("got SIGTERM before there was work")

    if stop.received:
        raise Stopped("got SIGTERM")
    signal.signal(signal.SIGTERM, leave)  # no other process waits for this one, so it need not wait for a step
    try:
        at = team.meet(place.patience)
    finally:
        stop.listen()
    return replace(place, rank=at.rank, world_size=at.world_size, backend="gloo", round=at.round, team=team)


def _one_round(train: TrainInRounds, here: Place, stop: StopRequest) -> str:
    """Train in one team. Returns the text of the last line, or None if the team meets again."""
    assert here.team
    try:
        return train(here, device_of(here), stop)
    except Exception as error:
        traceback.clear_frames(error.__traceback__)  # the frames hold the model's wrapper, and thereby the group
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
    """Train inside the process group, and leave the group after every object of the training is gone.

    The order matters. DistributedDataParallel holds the group. If it is the last to release the group, the group's
    destructor joins gloo's threads while it holds the interpreter's lock. Such a thread may wait for this lock, and
    then the process hangs.
    """
    try:
        device = join(place)
        stop.listen()
        stop.watch(os.environ)
        return train(device, stop)
    except BaseException as error:
        traceback.clear_frames(error.__traceback__)  # an error keeps the locals of `train`, and thereby the model
        raise
    finally:
        stop.end()
        if dist.is_initialized():
            dist.destroy_process_group()

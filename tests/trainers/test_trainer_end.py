"""How a process of a training ends: the order in which it releases its objects, and its last line."""

from __future__ import annotations

import signal
import weakref

import dist
import pytest
import torch
from files import DataError

from tests.trainers import launch

ALONE = dist.Place(rank=0, world_size=1, url="env://", backend="gloo")


class Model:
    """A stand-in for any object that holds the process group."""


@pytest.mark.parametrize("error", [None, ValueError("no"), DataError("no"), dist.Stopped("no"), KeyboardInterrupt()])
def test_the_model_is_gone_before_the_group(
    alone: None, monkeypatch: pytest.MonkeyPatch, error: BaseException | None
) -> None:
    """However a training ends, none of its objects is alive when the process group is destroyed.

    The other order hangs occasionally, when a thread of gloo wants the interpreter's lock at that moment.
    """
    models: list[weakref.ref[Model]] = []
    alive_at_the_end: list[bool] = []
    destroy = torch.distributed.destroy_process_group

    def observed() -> None:
        alive_at_the_end.append(models[0]() is not None)
        destroy()

    def train(_device: torch.device, _stop: dist.StopRequest) -> str:
        model = Model()
        models.append(weakref.ref(model))
        if error:
            raise error
        return "fine"

    monkeypatch.setattr(torch.distributed, "destroy_process_group", observed)
    dist.run(train, ALONE)
    assert alive_at_the_end == [False]
    assert not torch.distributed.is_initialized()


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (ValueError("two\nlines"), 1, "rank 0: failed: ValueError: two lines"),
        (DataError("x.gz: expected a, found b"), 2, "rank 0: bad data: x.gz: expected a, found b"),
        (KeyboardInterrupt(), 130, "rank 0: interrupted"),
        (
            dist.Stopped("rank 3 got SIGTERM; 12 steps were done"),
            143,
            "rank 0: stopped: rank 3 got SIGTERM; 12 steps were done",
        ),
    ],
)
def test_each_end_has_its_code_and_line(
    alone: None, capsys: pytest.CaptureFixture[str], error: BaseException, code: int, line: str
) -> None:
    """The exit code gives the kind of end, and the last line the reason; only failures show a traceback."""

    def train(_device: torch.device, _stop: dist.StopRequest) -> str:
        raise error

    assert dist.run(train, ALONE) == code
    err = capsys.readouterr().err
    assert err.splitlines()[-1] == line
    assert ("Traceback" in err) == (code == 1)


def test_an_exchange_that_fails_after_sigterm_is_a_stop(alone: None, capsys: pytest.CaptureFixture[str]) -> None:
    """When all processes get SIGTERM, a process that loses the others meanwhile counts as stopped, not as failed."""

    def train(_device: torch.device, stop: dist.StopRequest) -> str:
        signal.raise_signal(signal.SIGTERM)
        assert stop.received
        raise RuntimeError("Connection closed by peer")

    assert dist.run(train, ALONE) == 143
    assert capsys.readouterr().err == "rank 0: stopped: got SIGTERM\n"


def test_a_process_leaves_with_its_last_words_and_its_code_and_never_takes_the_interpreter_down() -> None:
    """All output arrives, the exit code is the given one, and Python's own shutdown does not run.

    A thread of gloo that outlives the group aborts the process if it meets an interpreter that is shutting down.
    """
    script = (
        "import atexit, sys, dist; atexit.register(print, 'going down'); "
        "sys.stdout.write('last words'); sys.stderr.write('why'); dist.leave(143)"
    )
    result = launch.finish(launch.start(["-c", script], launch.environment()))
    assert result == launch.Result(143, ["last words"], ["why"])

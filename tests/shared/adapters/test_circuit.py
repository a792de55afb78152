"""The circuit breaker pauses calls to a service that does not answer, and resumes them when the service answers
again."""

from __future__ import annotations

import threading

import pytest

from shared.adapters.azureml.circuit import FAILURES, REST_SECONDS, Circuit
from shared.kernel.errors import NoAnswer, NotFound, Unavailable


class Seconds:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def fail(circuit: Circuit) -> None:
    with pytest.raises(NoAnswer), circuit.call():
        raise NoAnswer("timed out")


def test_after_some_failures_calls_fail_at_once() -> None:
    """After several failures, calls fail at once with an error that says since when. After the pause, one call
    probes the service while the others keep failing."""
    clock = Seconds()
    circuit = Circuit("Azure ML", clock)
    for _ in range(FAILURES):
        fail(circuit)
    with (
        pytest.raises(Unavailable, match=r"Azure ML has not answered since .* next attempt is in 15 s"),
        circuit.call(),
    ):
        pytest.fail("the call was made")
    clock.now += REST_SECONDS
    fail(circuit)
    with pytest.raises(Unavailable, match="next attempt"), circuit.call():
        pytest.fail("the call was made")
    clock.now += REST_SECONDS
    with circuit.call():
        pass
    with circuit.call():
        pass


def test_a_refusal_is_an_answer() -> None:
    """Client errors never open the circuit, however many occur."""
    circuit = Circuit("Azure ML", Seconds())
    for _ in range(3 * FAILURES):
        with pytest.raises(NotFound), circuit.call():
            raise NotFound("no such job")
    for _ in range(FAILURES - 1):
        fail(circuit)
    with circuit.call():
        pass
    fail(circuit)
    with circuit.call():
        pass


def test_only_so_many_calls_wait_at_once() -> None:
    """A call beyond the limit of waiting calls is told to try again, and takes no slot."""
    circuit, go = Circuit("Azure ML", Seconds(), at_once=2), threading.Event()
    inside = threading.Barrier(3)

    def hold() -> None:
        with circuit.call():
            inside.wait(5)
            go.wait(5)

    threads = [threading.Thread(target=hold) for _ in range(2)]
    for thread in threads:
        thread.start()
    inside.wait(5)
    with pytest.raises(Unavailable, match="too many calls"), circuit.call():
        pytest.fail("the call was made")
    go.set()
    for thread in threads:
        thread.join(5)
    with circuit.call():
        pass

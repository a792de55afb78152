"""The cache of a process: how long, how much, and for how many threads."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from shared.kernel.errors import Unavailable
from shared.kernel.memory import Memory, Topic
from tests.fakes.storage import Clock

MINUTE = Topic[int]("minute", timedelta(minutes=1))


class Source:
    """Returns 1, 2, 3, ...; raises `error` if one is set."""

    def __init__(self) -> None:
        self.reads = 0
        self.error: Exception | None = None

    def __call__(self) -> int:
        self.reads += 1
        if self.error:
            raise self.error
        return self.reads


def test_a_forgotten_answer_is_read_again() -> None:
    """An answer that the process itself changed is read again; other topics stay cached."""
    memory, clock, source = Memory(), Clock(), Source()
    other = Topic[int]("other", timedelta(minutes=1))
    assert (memory.answer(MINUTE, clock(), source), memory.answer(other, clock(), source)) == (1, 2)
    memory.forget(MINUTE)
    assert (memory.answer(MINUTE, clock(), source), memory.answer(other, clock(), source)) == (3, 2)


def test_an_answer_is_remembered_for_its_age() -> None:
    """Until `max_age` has passed, the source is not read again."""
    memory, clock, source = Memory(), Clock(), Source()
    answers = []
    for _ in range(5):
        answers.append(memory.answer(MINUTE, clock(), source))
        clock.advance(25)
    assert answers == [1, 1, 1, 2, 2]


def test_an_answer_belongs_to_its_key_and_its_memory() -> None:
    memory, clock, source = Memory(), Clock(), Source()
    topic = Topic[int]("keyed", most=2)
    assert memory.answer(topic, clock(), source, "a") == 1
    assert memory.answer(topic, clock(), source, "b") == 2
    assert memory.answer(topic, clock(), source, "a") == 1
    assert Memory().answer(topic, clock(), source, "a") == 3


def test_the_answers_that_were_used_last_are_remembered() -> None:
    """A topic holds at most `most` answers; the least recently used answer is dropped first."""
    memory, clock, source = Memory(), Clock(), Source()
    topic = Topic[int]("few", most=2)
    for key in "abac":  # c replaces b
        memory.answer(topic, clock(), source, key)
    assert [memory.answer(topic, clock(), source, key) for key in "acb"] == [1, 3, 4]


def test_an_error_is_not_remembered() -> None:
    memory, clock, source = Memory(), Clock(), Source()
    source.error = Unavailable("away")
    with pytest.raises(Unavailable):
        memory.answer(MINUTE, clock(), source)
    source.error = None
    assert memory.answer(MINUTE, clock(), source) == 2


def test_the_last_answer_stands_in_while_a_service_is_away() -> None:
    """With `else_last`, an old answer is returned when reading fails; an error that is not ours is raised."""
    memory, clock, source = Memory(), Clock(), Source()
    topic = Topic[int]("else", timedelta(minutes=1), else_last=True)
    memory.answer(topic, clock(), source)
    clock.advance(3600)
    source.error = Unavailable("away")
    assert memory.answer(topic, clock(), source) == 1
    source.error = ZeroDivisionError()
    with pytest.raises(ZeroDivisionError):
        memory.answer(topic, clock(), source)


def test_an_answer_that_is_not_worth_it_is_not_kept() -> None:
    memory, clock, source = Memory(), Clock(), Source()
    topic = Topic[int]("odd", keeps=lambda number: number % 2 == 0)
    assert [memory.answer(topic, clock(), source) for _ in range(4)] == [1, 2, 2, 2]


def test_one_thread_reads_for_all_that_ask() -> None:
    """Sixteen threads that ask during a read cause no second read, and get its answer."""
    memory, clock = Memory(), Clock()
    begun, end = threading.Event(), threading.Event()
    source = Source()

    def read() -> int:
        begun.set()
        assert end.wait(10)
        return source()

    with ThreadPoolExecutor(16) as threads:
        first = threads.submit(memory.answer, MINUTE, clock(), read)
        assert begun.wait(10)
        others = [threads.submit(memory.answer, MINUTE, clock(), source) for _ in range(15)]
        end.set()
        assert [answer.result(10) for answer in (first, *others)] == [1] * 16


def test_whoever_waits_for_a_read_gets_its_error_and_the_next_reads_again() -> None:
    memory, clock = Memory(), Clock()
    begun, end = threading.Event(), threading.Event()

    def read() -> int:
        begun.set()
        assert end.wait(10)
        raise Unavailable("away")

    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(memory.answer, MINUTE, clock(), read)
        assert begun.wait(10)
        second = threads.submit(memory.answer, MINUTE, clock(), read)
        end.set()
        for answer in (first, second):
            with pytest.raises(Unavailable):
                answer.result(10)
    assert memory.answer(MINUTE, clock(), Source()) == 1


def test_a_thread_does_not_wait_for_itself() -> None:
    """A read that asks for its own key, or is interrupted by another task of its thread, reads again."""
    memory, clock, source = Memory(), Clock(), Source()

    def read() -> int:
        return memory.answer(MINUTE, clock(), source) + 10

    assert memory.answer(MINUTE, clock(), read) == 11
    assert source.reads == 1

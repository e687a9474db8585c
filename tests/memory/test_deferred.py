"""Deferred uses: blocks held until events are done."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator

import pytest

from umarray.memory import deferred


class Block:
    """Something that a weak reference can watch."""


class Point:
    """An event that is done when the test says so."""

    def __init__(self, done: bool = False) -> None:
        self.is_done = done

    def done(self) -> bool:
        return self.is_done

    def wait(self) -> None:
        raise AssertionError("a drain never waits")


class Broken(Point):
    def done(self) -> bool:
        raise OSError


@pytest.fixture(autouse=True)
def _nothing_held() -> Iterator[None]:
    yield
    deferred._uses.clear()


def test_a_block_is_let_go_only_when_all_of_its_events_are_done() -> None:
    block, points = Block(), (Point(), Point())
    seen = weakref.ref(block)
    deferred.hold(block, points)
    del block
    for point in points:
        assert deferred.drain() == 1 and seen() is not None
        point.is_done = True
    assert deferred.held() == 1, "nobody drained"
    assert deferred.drain() == 0 and seen() is None


def test_a_held_block_does_not_hold_back_those_after_it() -> None:
    late = Point()
    deferred.hold(Block(), (late,))
    for _ in range(5):
        deferred.hold(Block(), (Point(done=True),))
    assert deferred.drain() == 1
    late.is_done = True
    assert deferred.drain() == 0


def test_an_event_that_cannot_be_asked_keeps_its_block() -> None:
    deferred.hold(Block(), (Broken(),))
    assert deferred.drain() == 1


def test_a_block_whose_end_drains_again() -> None:
    class Nested:
        def __del__(self) -> None:
            deferred.drain()

    for _ in range(3):
        deferred.hold(Nested(), (Point(done=True),))
    assert deferred.drain() == 0


def test_threads_that_drain_together_lose_and_keep_nothing() -> None:
    points = [Point(done=index % 2 == 0) for index in range(2000)]
    for point in points:
        deferred.hold(Block(), (point,))
    start = threading.Barrier(4)

    def drain() -> None:
        start.wait(10)
        deferred.drain()

    threads = [threading.Thread(target=drain) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert deferred.drain() == 1000
    for point in points:
        point.is_done = True
    assert deferred.drain() == 0

"""Threads or the caller's thread: tried where it may pay, and what is faster stays."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from umarray.pipeline.pace import LONG, TRY_CALLER, TRY_THREADS, Pace


class Clock:
    """Drives a pace through steps that take so long in each way."""

    def __init__(self, pace: Pace, caller: float, threads: float, prep: float = 0.5, wait: float = 0.0) -> None:
        self.pace, self.now = pace, 1.0
        self.prep, self.wait = prep, wait  # shares of a step in the caller's thread
        self.seconds = {False: caller, True: threads}
        self.ways: list[bool] = []

    def run(self, steps: int) -> bool:
        """The way at the end."""
        for _ in range(steps):
            self.ways.append(self.pace.threads)
            self.now += (took := self.seconds[self.pace.threads])
            if not self.pace.threads:
                self.pace.prepared(self.prep * took)
                self.pace.waited(self.wait * took)
            self.pace.step(self.now)
        return self.pace.threads


def test_what_was_asked_for_stays() -> None:
    for workers, threads in ((0, False), (1, True), (4, True)):
        pace = Pace(workers, 3, live=False)
        pace.prepared(1.0)
        for caller, own in ((0.1e-3, 1.0), (1.0, 0.1e-3)):
            assert Clock(pace, caller, own).run(500) is threads


@pytest.mark.parametrize("live", [True, False])
def test_an_iterator_is_read_by_a_thread_first(live: bool) -> None:
    assert Pace(None, 3, live).threads is live


@pytest.mark.parametrize("first", [LONG / 2, LONG, 2 * LONG])  # the first may compile what it runs
def test_long_preparation_gets_a_thread_at_once(first: float) -> None:
    for second in (LONG / 2, LONG):
        pace = Pace(None, 3, live=False)
        pace.prepared(first)
        assert not pace.threads
        pace.prepared(second)
        assert pace.threads is (min(first, second) >= LONG)


@pytest.mark.parametrize(
    ("prep", "wait", "tried"),
    [
        (0.5, 0.0, True),
        (0.5, 0.45, False),
        (0.05, 0.0, False),
        (0.95, 0.0, False),
        (0.2, 0.6, True),
        (0.15, 0.8, False),
    ],
)
def test_threads_are_tried_where_they_can_hide_something(prep: float, wait: float, tried: bool) -> None:
    clock = Clock(Pace(None, 3, live=False), 1e-3, 0.5e-3, prep, wait)
    assert clock.run(300) is tried


def test_long_steps_are_decided_by_a_few() -> None:
    assert Clock(Pace(None, 3, live=False), 0.04, 0.03).run(12) is True


@pytest.mark.parametrize(
    ("caller", "threads", "best"),
    [(0.8e-3, 0.6e-3, True), (0.6e-3, 0.8e-3, False), (1.5e-3, 1.3e-3, True), (0.6e-3, 0.6e-3, None)],
)
@pytest.mark.parametrize("live", [True, False])
def test_the_faster_way_is_found_and_stays(caller: float, threads: float, best: bool | None, live: bool) -> None:
    clock = Clock(Pace(None, 3, live), caller, threads)
    found = clock.run(200)
    assert best is None or found is best
    clock.ways.clear()
    assert clock.run(500) is found and set(clock.ways) == {found}


def test_what_cannot_pay_is_not_tried() -> None:
    short = Clock(Pace(None, 3, live=False), TRY_THREADS / 2, TRY_THREADS / 4)
    long = Clock(Pace(None, 3, live=True), TRY_CALLER / 4, TRY_CALLER * 2)
    assert short.run(2000) is False and set(short.ways) == {False}
    assert long.run(500) is True and set(long.ways) == {True}


def test_steps_that_change_are_decided_anew_and_ever_less_often() -> None:
    clock = Clock(Pace(None, 3, live=False), 0.6e-3, 1.2e-3)
    assert clock.run(300) is False
    clock.seconds = {False: 2.4e-3, True: 1.2e-3}
    assert clock.run(300) is True
    changes = []
    for turn in range(40):  # steps that keep changing must not make it flutter
        clock.seconds = {False: 1e-3 * 3 ** (turn % 2), True: 0.9e-3 * 3 ** (turn % 2)}
        clock.ways.clear()
        clock.run(60)
        changes.append(sum(a is not b for a, b in zip(clock.ways, clock.ways[1:], strict=False)))
    assert sum(changes[20:]) <= sum(changes[:20])


def test_one_long_interruption_does_not_decide_where_steps_are_short() -> None:
    clock = Clock(Pace(None, 3, live=False), 20e-6, 60e-6)
    clock.run(100)
    assert clock.pace.short or clock.run(400) is False
    clock.now += 0.004
    assert clock.run(1000) is False


@given(st.lists(st.tuples(st.floats(1e-6, 1e-2), st.integers(1, 60)), max_size=20), st.booleans())
def test_any_times_are_survived(runs: list[tuple[float, int]], live: bool) -> None:
    pace = Pace(None, 3, live)
    clock = Clock(pace, 0.0, 0.0)
    for seconds, steps in runs:
        clock.seconds = {False: seconds, True: seconds * 1.3}
        clock.run(steps)
        pace.begin()
    assert pace.threads in (True, False)


def test_slow_first_steps_do_not_decide() -> None:
    clock = Clock(Pace(None, 3, live=False), TRY_THREADS * 1.2, TRY_THREADS * 0.9)
    clock.run(2 * 3 + 2 + 17)  # one measurement
    clock.seconds[False] = TRY_THREADS * 0.8
    assert clock.run(500) is False and set(clock.ways) == {False}

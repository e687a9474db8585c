"""Requests carried out one at a time, in order, by whoever has the turn."""

from __future__ import annotations

import threading

from umarray.residency.turns import Turns


def test_a_request_is_carried_out_before_submit_returns() -> None:
    turns, done = Turns(), list[int]()
    for wait in (True, False):
        turns.submit(lambda: done.append(1), wait=wait)
    assert done == [1, 1]


def test_a_request_made_inside_one_is_carried_out_after_it() -> None:
    turns, done = Turns(), list[str]()

    def outer() -> None:
        turns.submit(lambda: done.append("inner"), wait=True)
        done.append("outer")

    turns.submit(outer, wait=True)
    assert done == ["outer", "inner"]


def test_one_at_a_time_and_none_is_lost() -> None:
    turns, begin = Turns(), threading.Barrier(8)
    inside, worst, done = 0, 0, 0

    def request() -> None:
        nonlocal inside, worst, done
        inside += 1
        worst = max(worst, inside)
        done += 1
        inside -= 1

    def work(wait: bool) -> None:
        begin.wait(10)
        for _ in range(500):
            turns.submit(request, wait=wait)

    threads = [threading.Thread(target=work, args=(number % 2 == 0,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    assert (worst, done) == (1, 4000)


def test_one_that_does_not_wait_leaves_its_request_to_the_thread_that_has_the_turn() -> None:
    turns, inside, go_on, order = Turns(), threading.Event(), threading.Event(), list[str]()

    def long() -> None:
        inside.set()
        assert go_on.wait(10)
        order.append("long")

    other = threading.Thread(target=lambda: turns.submit(long, wait=True))
    other.start()
    assert inside.wait(10)
    turns.submit(lambda: order.append(threading.current_thread().name), wait=False)
    assert order == []
    waiter = threading.Thread(target=lambda: turns.submit(lambda: order.append("waited"), wait=True))
    waiter.start()
    go_on.set()
    other.join(10)
    waiter.join(10)
    assert order == ["long", other.name, "waited"]

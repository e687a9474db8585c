"""The lock around the arenas."""

from __future__ import annotations

import gc
import threading

from umarray.memory.guard import Guard


def test_it_says_when_its_own_thread_enters_again_and_keeps_the_collector_out() -> None:
    guard = Guard()
    assert gc.isenabled()
    with guard as again:
        assert not again and not gc.isenabled()
        with guard as again:
            assert again
        assert not gc.isenabled()
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        with Guard():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_another_thread_waits() -> None:
    guard, order = Guard(), []

    def other() -> None:
        with guard as again:
            order.append(("other", again))

    with guard:
        thread = threading.Thread(target=other)
        thread.start()
        order.append(("first", False))
    thread.join(10)
    assert order == [("first", False), ("other", False)]

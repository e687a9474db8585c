"""The lock around the arenas."""

from __future__ import annotations

import gc
import os
import signal
import threading
import warnings

from umarray.memory.guard import Guard
from umarray.memory.reserve import _guard


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


def test_a_forked_child_gets_it_whoever_held_it() -> None:
    held, let_go = threading.Event(), threading.Event()

    def hold() -> None:
        with _guard:
            held.set()
            let_go.wait(20)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # 3.12 warns of threads at a fork
        child = os.fork()
    if child == 0:
        signal.alarm(10)
        with _guard:
            os._exit(0 if gc.isenabled() is False else 1)
    assert os.waitpid(child, 0)[1] == 0
    let_go.set()
    thread.join(20)

"""Threads of a pipeline that queue work on a stream, and the order in which they get it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from queue import SimpleQueue
from typing import Any, Generic, TypeVar, final

from umarray.drivers.base import Driver

T = TypeVar("T")


@final
class InOrder(Generic[T]):
    """Hands on what several threads finish in any order, in the order of its numbers.

    Notes
    -----
    Safe from any thread; `out` is called by one at a time and must not wait.
    """

    def __init__(self, out: Callable[[T], None]) -> None:
        self._out = out
        self._lock = threading.Lock()
        self._early: dict[int, T] = {}
        self._next = 0

    def put(self, number: int, value: T) -> None:
        """Hand `value` on as soon as all numbers below its own were."""
        with self._lock:
            self._early[number] = value
            while self._next in self._early:
                self._out(self._early.pop(self._next))
                self._next += 1


@final
class Lane:
    """A thread with a queue: does one thing to each message, with a device and a stream as its current ones.

    Parameters
    ----------
    work : callable
        Called with each message. What it raises goes to `fail`, and the lane ends.
    """

    def __init__(
        self,
        name: str,
        work: Callable[[Any], None],
        fail: Callable[[BaseException], None],
        driver: Driver,
        stream: int,
        device: int,
    ) -> None:
        self._queue: SimpleQueue[Any] = SimpleQueue()
        self._work = work
        self._fail = fail
        self._current: Callable[[], AbstractContextManager[None]] = lambda: driver.use_stream(stream, device)
        self._thread = threading.Thread(target=self._run, name=f"umarray-pipeline-{name}", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def put(self, message: Any) -> None:
        """Queue a message."""
        self._queue.put(message)

    def stop(self) -> None:
        """End after what was queued before. Takes no lock."""
        self._queue.put(None)

    def join(self) -> None:
        """Wait for the end."""
        while self._thread.is_alive():
            self._thread.join(0.5)  # in pieces, so that a signal is seen

    def _run(self) -> None:
        try:
            with self._current():
                while (message := self._queue.get()) is not None:
                    self._work(message)
        except BaseException as error:
            self._fail(error)

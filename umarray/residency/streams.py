"""Streams that callers give, streams of our own, and how work on two of them is put in order.

Each device has one non-blocking stream of ours for moving pages. It is joined to the caller's current stream by events
both ways, and never by keeping the host: pages move after the work queued so far, and what is queued next starts when
they are there.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import nullcontext
from dataclasses import dataclass
from queue import SimpleQueue

from umarray.drivers.base import Driver


@dataclass(frozen=True, slots=True)
class Lane:
    """A stream by its handle, and the device that it belongs to."""

    stream: int
    device: int


class OwnStreams:
    """Our stream of each device, made at its first use and kept; and a thread a device for calls that block."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._streams: dict[int, int] = {}
        self._threads: dict[int, _Thread] = {}
        self._lock = threading.RLock()  # a finaliser may come in while we hold it

    def lane(self, device: int) -> Lane:
        """Our stream of `device`."""
        stream = self._streams.get(device)
        if stream is None:
            made = self._driver.create_stream(device)
            stream = self._streams.setdefault(device, made)
            if stream != made:  # another thread was faster
                self._driver.destroy_stream(made, device)
        return Lane(stream, device)

    def in_thread(self, device: int, work: Callable[[], None]) -> Future[None]:
        """Run `work` in the thread of `device`, in the order of the calls."""
        thread = self._threads.get(device)
        if thread is None:
            with self._lock:
                thread = self._threads.setdefault(device, _Thread(f"umarray-prefetch-{device}"))
        return thread.submit(work)

    def settle(self, device: int) -> None:
        """Wait until the thread of `device` has made the calls that it was given so far."""
        thread = self._threads.get(device)
        if thread is not None and thread.alive:
            thread.submit(lambda: None).result()


class _Thread:
    """A daemon thread that runs callables in order. `submit` may come from a finaliser: SimpleQueue is re-entrant."""

    def __init__(self, name: str) -> None:
        self._work: SimpleQueue[tuple[Callable[[], None], Future[None]]] = SimpleQueue()
        self._started = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def submit(self, work: Callable[[], None]) -> Future[None]:
        future: Future[None] = Future()
        self._work.put((work, future))
        if not self._started:
            self._started = True
            self._thread.start()
        return future

    @property
    def alive(self) -> bool:
        """It runs, in this process: a fork takes no thread along."""
        return self._thread.is_alive()

    def _run(self) -> None:
        while True:
            work, future = self._work.get()
            try:
                work()
            except BaseException as error:
                future.set_exception(error)
            else:
                future.set_result(None)
            del work, future  # they hold arrays


def current_lanes(driver: Driver, *devices: int) -> list[Lane]:
    """The calling thread's current stream of each device."""
    return [Lane(driver.current_stream(device), device) for device in dict.fromkeys(devices)]


def after(driver: Driver, lane: Lane, others: list[Lane]) -> None:
    """Let what is queued on `lane` from now on wait for the work queued on `others` so far."""
    events = [driver.record(other.stream, other.device) for other in others if other != lane]
    if not events:
        return
    # A default stream's handle means that of the current device.
    here = lane.device == driver.current_device()
    with nullcontext() if here else driver.use_stream(lane.stream, lane.device):
        for event in events:
            driver.wait(lane.stream, event)

"""LAG: streams whose order is real and whose time is the test's.

Each stream is a queue. Work runs in order, in the thread that queues it or that lets it go on, as soon as nothing
before it holds the stream; so work on a stream that nobody holds is done when its call returns, and work behind a
closed gate truly is not. There are no threads and no sleeps. Host waits are real: they end when another thread opens
the gate, and give up with an error after `PATIENCE` seconds, so that a test cannot hang.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from time import perf_counter
from typing import Any

PATIENCE = 30.0  # seconds that a host wait lasts before it is an error


class Held(AssertionError):
    """A host wait ran out of patience: its stream is held by a gate that nobody opens."""


class Gate:
    """Holds a stream from the point where it was queued. A `with` block opens it at its end."""

    def __init__(self, streams: Streams) -> None:
        self._streams = streams
        self.opened = False

    def open(self) -> None:
        """Let the stream go on; what was waiting runs now, in this thread."""
        with self._streams.changed:
            self.opened = True
        self._streams.drain_all()

    def __enter__(self) -> Gate:
        return self

    def __exit__(self, *_: object) -> None:
        self.open()


class FakeEvent:
    """A point in a queue."""

    def __init__(self, streams: Streams, queue: Queue, timed: bool) -> None:
        self._streams = streams
        self.queue = queue
        self.timed = timed
        self.finished = False
        self.at = 0.0

    def done(self) -> bool:
        return self.finished

    def wait(self) -> None:
        self._streams.host_wait(self)


class Queue:
    """One stream."""

    def __init__(self, device: int, handle: int) -> None:
        self.device = device
        self.handle = handle
        self.items: deque[Gate | FakeEvent | tuple[FakeEvent] | Callable[[], Any]] = deque()
        self.busy = False
        self.error: BaseException | None = None

    def __repr__(self) -> str:
        return f"<stream {self.handle} of device {self.device}, {len(self.items)} queued>"


class Streams:
    """Every queue of one driver, and their one scheduler. Items: work, a gate, an event, or (event,) to wait for."""

    def __init__(self) -> None:
        self.changed = threading.Condition(threading.RLock())
        self.queues: list[Queue] = []

    def add(self, device: int, handle: int) -> Queue:
        queue = Queue(device, handle)
        with self.changed:
            self.queues.append(queue)
        return queue

    def put(self, queue: Queue, item: Any) -> None:
        with self.changed:
            queue.items.append(item)
        self._drain([queue])

    def record(self, queue: Queue, timed: bool = False) -> FakeEvent:
        event = FakeEvent(self, queue, timed)
        self.put(queue, event)
        return event

    def drain_all(self) -> None:
        with self.changed:
            queues = list(self.queues)
        self._drain(queues)

    def pending(self) -> list[Queue]:
        """Queues with work that has not run."""
        with self.changed:
            return [queue for queue in self.queues if queue.items or queue.busy]

    def host_wait(self, event: FakeEvent) -> None:
        with self.changed:
            if not self.changed.wait_for(lambda: event.finished, PATIENCE):
                raise Held(f"waited {PATIENCE} s for {event.queue}: its head is {list(event.queue.items)[:1]}")
            error, event.queue.error = event.queue.error, None
        if error is not None:
            raise error

    def _drain(self, todo: list[Queue]) -> None:
        while todo:
            queue = todo.pop(0)
            with self.changed:
                if queue.busy:
                    continue  # the thread that runs it looks again before it leaves
                queue.busy = True
            while (item := self._take(queue)) is not None:
                if callable(item):
                    try:
                        item()
                    except BaseException as error:  # an asynchronous failure comes out at the next host wait
                        queue.error = queue.error or error
                elif isinstance(item, FakeEvent):
                    with self.changed:
                        item.at = perf_counter()
                        item.finished = True
                        self.changed.notify_all()
                        todo.extend(other for other in self.queues if other is not queue)

    def _take(self, queue: Queue) -> Any:
        """The next item that may run; None, and the queue let go in the same step, where there is none."""
        with self.changed:
            if queue.items and _ready(queue.items[0]):
                return queue.items.popleft()
            queue.busy = False
            self.changed.notify_all()
            return None


def _ready(item: Any) -> bool:
    if isinstance(item, Gate):
        return item.opened
    if isinstance(item, tuple):
        return bool(item[0].finished)
    return True

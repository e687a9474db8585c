"""The threads of one iteration: those that prepare, and where it may keep its caller, those that queue the way.

Whoever prepares (`feed`) also queues the batch's way to the device, unless that may keep its caller: then a transfer
thread does, and a back thread the way home. Whoever fails first is the one whose error is kept; every waiting place is
woken then, and what is running ends by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from queue import SimpleQueue
from typing import Any, final

from umarray.pipeline.engine import END, WAKE, Engine
from umarray.pipeline.feed import Feed
from umarray.pipeline.first_error import FirstError
from umarray.pipeline.lanes import Lane
from umarray.pipeline.shown import shown
from umarray.pipeline.slots import Slot


@final
class Crew:
    """Prepares `items` in `workers` threads, or where they rest in the thread that iterates, and moves the batches.

    Attributes
    ----------
    stopping : bool
        Nobody takes results any more: the loop was left, or an error ended it.
    """

    def __init__(self, engine: Engine, items: Iterator[Any], workers: int, empty: Callable[[], Exception]) -> None:
        self._engine = engine
        self._failure = FirstError()
        self.stopping = False
        transport = engine.transport
        self._transfer = self._back = None
        if transport.keeps_caller and transport.stream is not None:
            fail = self._failer("transfer")
            self._transfer = Lane("transfer", self._move, fail, engine.driver, transport.stream, transport.device)
        if transport.keeps_caller and transport.back_stream is not None:
            fail = self._failer("back")
            self._back = Lane("back", self._bring_home, fail, engine.driver, transport.back_stream, transport.device)
        # Of this iteration alone, so that a late `stop` cannot reach the next one.
        self._queues: list[SimpleQueue[Slot | None]] = []
        out = self._arrive if self._transfer is None else self._transfer.put
        self.feed = Feed(engine, items, workers, out, self.fail, empty)

    @property
    def error(self) -> BaseException | None:
        """The first error."""
        return self._failure.error

    def take_error(self) -> BaseException | None:
        """The first error, which is not kept any more."""
        return self._failure.take()

    def start(self, prepare: bool) -> None:
        """Start the threads; those that prepare only where that is said."""
        self._queues = [ring.free for ring in self._engine.rings()]
        for lane in (self._transfer, self._back):
            if lane is not None:
                lane.start()
        if prepare:
            self.feed.wake()

    # The transfer thread, or whoever prepares

    def _move(self, message: Any) -> None:
        if not self.stopping:
            self._arrive(message)

    def _arrive(self, message: Any) -> None:
        if message is not END:
            with shown("transfer", message.parts[0].index):
                moved = self._engine.transport.move(message)
            if not moved:
                return
            message.slot.hold(message.parts)
        self._engine.inbox.put(message)

    # The back thread

    def _bring_home(self, slot: Slot) -> None:
        self._engine.transport.bring_home(slot)
        self._engine.inbox.put(WAKE)  # the thread that iterates may wait for a slot to prepare in

    # The thread that iterates

    def send_home(self, slot: Slot) -> None:
        """Let a slot come home."""
        if self._back is None:
            self._engine.transport.bring_home(slot)
        else:
            self._back.put(slot)

    def end_homing(self) -> None:
        """Wait until the slots that were sent home are on their way."""
        if self._back is not None:
            self._back.stop()
            self._back.join()

    def join(self) -> None:
        """Wait for the threads that prepare, but for a source that is read, and for the transfer thread."""
        self.feed.join()
        if self._transfer is not None:
            self._transfer.join()

    # Any thread

    def _failer(self, stage: str) -> Callable[[BaseException], None]:
        return lambda error: self.fail(stage, -1, error)

    def fail(self, stage: str, index: int, error: BaseException) -> None:
        """Keep the error if it is the first one, and wake everyone."""
        if not self.stopping:
            self._failure.keep(stage, index, error)
        self.stop()

    def stop(self) -> None:
        """Wake everyone to end. Takes no lock."""
        self.stopping = True
        self.feed.stop()
        for queue in self._queues:
            queue.put(None)
        if self._transfer is not None:
            self._transfer.stop()
        self._engine.inbox.put(WAKE)

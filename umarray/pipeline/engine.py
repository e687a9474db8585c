"""An open pipeline's slots, and what is done to one: write, move, lend, take back. No threads of its own."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from time import perf_counter
from typing import Any, final

from umarray import events
from umarray.drivers.base import Driver, Event
from umarray.pipeline import choose
from umarray.pipeline.batch import Batch, WritableSlot
from umarray.pipeline.kernel_lock import kernel_turn
from umarray.pipeline.layout import Layout
from umarray.pipeline.report import Clock
from umarray.pipeline.ring import Job, Lending, Ring, Role, Slot, State

END = object()
"""In the inbox: the source has no more."""
WAKE = object()
"""In the inbox: look whether something failed."""


@final
class Engine:
    """The slots of a pipeline and how a batch gets through them.

    Attributes
    ----------
    inbox : SimpleQueue
        What the iterating thread is told: a `Job` that is ready, a `Lending` that has ended, END, WAKE.
    """

    def __init__(
        self,
        driver: Driver,
        device: int,
        like: Any,
        slots: int,
        transport: str,
        prep: Callable[[Any, Any], Any] | None,
        clock: Clock,
    ) -> None:
        self.driver = driver
        self.device = device
        self.layout = Layout(like)
        self.clock = clock
        self.inbox: SimpleQueue[Any] = SimpleQueue()
        self.ready: deque[Job] = deque()
        self.ended = False
        self._prep = prep
        self.transport = choose.make(transport, driver, device, self.layout, slots, self.inbox, clock)
        ring = self.transport.writing
        self._writable = {slot: WritableSlot(self.layout, slot, ring.writer(slot)) for slot in ring.slots}

    def slot_bytes(self) -> int:
        """Bytes of all slots."""
        return sum(slot.nbytes for ring in self.rings() for slot in ring.slots)

    def rings(self) -> list[Ring]:
        """The ring of slots, or the two."""
        transport = self.transport
        return [transport.writing] if transport.writing is transport.reading else [transport.writing, transport.reading]

    def write(self, slot: Slot, item: Any, index: int) -> Job:
        """Prepare an item in a slot that is `State.FILLING`, once its memory may be written."""
        if slot.after is not None:
            slot.after.wait()
        view = self._writable[slot]
        view.renew()
        start = perf_counter()
        if self._prep is None:
            meta, others = None, view.fill(item)
        else:
            with kernel_turn():
                start = perf_counter()
                meta = self._prep(item, view)
            view.check()
            others = self.layout.structure.others
        self.clock.ran("prep", index, start, perf_counter())
        slot.go(State.FILLED, Role.PREP)
        return Job(index, slot, view.length, meta, others)

    def lend(self, job: Job) -> Batch:
        """The batch of a job that is ready; the current stream waits for it."""
        if job.ready is not None:
            self.driver.wait(self.stream(), job.ready)
        memory = self.transport.reading.lend(job.slot, job.index)
        data = self.layout.structure.rebuild(self.layout.arrays(memory, job.length), job.others)
        return Batch(job.index, job.length, job.meta, data)

    def stream(self) -> int:
        """The calling thread's current stream of the pipeline's device."""
        return self.driver.current_stream(self.device)

    def mark(self) -> Event:
        """An event after the work queued so far on the current stream."""
        return self.driver.record(self.stream(), self.device, timed=True)

    def handle(self, message: Any, read: Event | None = None) -> Slot | None:
        """Act on a message of the inbox; returns a slot that has to be brought home.

        `read` is an event that lies after the last reader of every slot that comes back; without it one is recorded.
        """
        if isinstance(message, Lending):
            self.transport.reading.take_back(message.slot)
            if self.transport.release(message.slot, read or self.mark()):
                return message.slot
        elif isinstance(message, Job):
            self.ready.append(message)
        elif message is END:
            self.ended = True
        return None

    def held(self) -> list[Slot]:
        """The slots that arrays refer to, where these are all that batches can lie in; else none."""
        ring = self.transport.reading
        return sorted(ring.lent, key=lambda slot: slot.batch) if len(ring.lent) == len(ring.slots) else []

    def restart(self) -> None:
        """Forget what an iteration that has ended left under way."""
        self.ready.clear()
        self.ended = False
        for ring in self.rings():
            ring.restart()
        if events.listeners and self.transport.stream is not None:
            event = self.driver.record(self.transport.stream, self.device, timed=True)
            event.wait()
            self.clock.anchor(event, perf_counter())
        elif events.listeners:
            self.clock.anchor(self.driver.record(self.stream(), self.device, timed=True), perf_counter())

    def close(self) -> None:
        """Wait for the device, then give everything back; slots that arrays refer to when these die."""
        failure: BaseException | None = None
        while not self.inbox.empty():  # slots whose last array died since the last iteration
            if isinstance(message := self.inbox.get(), Lending):
                self.transport.reading.take_back(message.slot)
                message.slot.after = self.mark()
        transport = self.transport
        streams = [stream for stream in (transport.stream, transport.back_stream) if stream is not None]
        for stream in streams:
            try:
                self.driver.synchronize(stream, self.device)
            except BaseException as error:
                failure = failure or error
        for ring in self.rings():
            for slot in ring.slots:
                try:
                    if slot.after is not None:
                        slot.after.wait()
                except BaseException as error:
                    failure = failure or error
                slot.after = None
        for view in self._writable.values():
            view.close()
        self._writable.clear()
        self.ready.clear()
        try:
            self.transport.close()
        except BaseException as error:
            failure = failure or error
        if failure is not None:
            raise failure

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
from umarray.pipeline.ring import Ring
from umarray.pipeline.shown import shown
from umarray.pipeline.slots import Job, Lending, Part, Slot

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
        layout: Layout,
        slots: int,
        transport: str,
        prep: Callable[[Any, Any], Any] | None,
        clock: Clock,
        group: int = 1,
    ) -> None:
        self.driver = driver
        self.device = device
        self.layout = layout
        self.clock = clock
        self.slots = slots
        self.group = group
        """How many batches a slot has room for; they travel together."""
        self.inbox: SimpleQueue[Any] = SimpleQueue()
        self.ready: deque[Job] = deque()
        self.ended = False
        self._prep = prep
        nbytes = (group - 1) * self.layout.stride + self.layout.nbytes
        self.transport = choose.make(transport, driver, device, self.layout, nbytes, slots, self.inbox, clock)
        ring = self.transport.writing
        self._writable = {
            slot: [WritableSlot(layout, slot.address + n * layout.stride, writer) for n in range(group)]
            for slot in ring.slots
            for writer in (ring.writer(slot),)
        }

    def slot_bytes(self) -> int:
        """Bytes of all slots."""
        return sum(slot.nbytes for ring in self.rings() for slot in ring.slots)

    def rings(self) -> list[Ring]:
        """The ring of slots, or the two."""
        transport = self.transport
        return [transport.writing] if transport.writing is transport.reading else [transport.writing, transport.reading]

    def write(self, job: Job, item: Any, index: int) -> None:
        """Prepare an item in the next place of a job's slot, which is `State.FILLING` and may be written."""
        view = self._writable[job.slot][len(job.parts)]
        view.renew()
        start = perf_counter()
        if self._prep is None:
            with shown("prep", index):
                meta, others = None, view.fill(item)
        else:
            with kernel_turn(), shown("prep", index):
                start = perf_counter()
                meta = self._prep(item, view)
            view.check()
            others = self.layout.structure.others
        self.clock.ran("prep", index, start, perf_counter())
        job.parts.append(Part(index, view.length, meta, others))

    def lend(self, job: Job, stream: int) -> Batch:
        """The next batch of a job that is ready; `stream`, the current one, waits for it."""
        slot, ring, layout = job.slot, self.transport.reading, self.layout
        if job.stream != stream:
            if job.stream is not None:  # the slot is free again once the readers on the one before are done too
                self.driver.wait(stream, self.driver.record(job.stream, self.device))
            if job.ready is not None:
                self.driver.wait(stream, job.ready)
            job.stream = stream
        at = job.lent
        part = job.parts[at]
        lease = ring.lend(slot, part.index)
        try:
            arrays = layout.arrays(self.driver, slot.address + at * layout.stride, lease, self.device, part.length)
        except BaseException:
            ring.withdraw(slot, lease)
            raise
        job.lent += 1
        data = layout.structure.rebuild(arrays, part.others)
        return Batch(part.index, part.length, part.meta, data)

    def stream(self) -> int:
        """The calling thread's current stream of the pipeline's device."""
        return self.driver.current_stream(self.device)

    def mark(self, timed: bool = False) -> Event:
        """An event after the work queued so far on the current stream."""
        return self.driver.record(self.stream(), self.device, timed=timed)

    def handle(self, message: Any, read: Event | None = None) -> Slot | None:
        """Act on a message of the inbox; returns a slot that has to be brought home.

        `read` is an event that lies after the last reader of every slot that comes back; without it one is recorded.
        """
        if isinstance(message, Lending):
            if self.transport.reading.take_back(message) and self.transport.release(message.slot, read or self.mark()):
                return message.slot
        elif isinstance(message, Job):
            self.ready.append(message)
        elif message is END:
            self.ended = True
        return None

    def next_ready(self) -> Job | None:
        """The job whose next batch is to be lent."""
        while self.ready:
            if self.ready[0].lent < len(self.ready[0].parts):
                return self.ready[0]
            self.ready.popleft()
        return None

    def held(self) -> list[int]:
        """The batches that arrays refer to, where these are as many as there are slots; else none."""
        lendings = [lending.batch for slot in self.transport.reading.lent for lending in slot.lendings]
        return sorted(lendings) if len(lendings) >= self.slots else []

    def restart(self) -> None:
        """Forget what an iteration that has ended left under way."""
        self.ready.clear()
        self.ended = False
        for ring in self.rings():
            for slot in ring.forget_unread():
                slot.after = self.mark()
            ring.restart()
        if events.listeners and self.transport.stream is not None:
            event = self.driver.record(self.transport.stream, self.device, timed=True)
            event.wait()
            self.clock.anchor(event, perf_counter())
        elif events.listeners:
            self.clock.anchor(self.mark(timed=True), perf_counter())

    def close(self) -> None:
        """Wait for the device, then give everything back; slots that arrays refer to when these die."""
        failure: BaseException | None = None
        while not self.inbox.empty():  # slots whose last array died since the last iteration
            if isinstance(message := self.inbox.get(), Lending):
                self.transport.reading.take_back(message)
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
        for views in self._writable.values():
            for view in views:
                view.close()
        self._writable.clear()
        self.ready.clear()
        try:
            self.transport.close()
        except BaseException as error:
            failure = failure or error
        if failure is not None:
            raise failure

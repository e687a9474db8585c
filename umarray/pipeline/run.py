"""One iteration of a pipeline: its threads, and the steps of the thread that iterates.

Preparation threads take a free slot, then the next item (in this order and one at a time, so that the items under way
are always the oldest ones), prepare it, and hand it on in the order of the items: to the transfer thread, or where
nothing travels straight to the inbox. The iterating thread waits in one place only, for the inbox. Whoever fails first
is the one whose error is kept; every waiting place is woken then, and what is running ends by itself.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from queue import Empty, SimpleQueue
from time import perf_counter
from typing import Any, final

from umarray.drivers.base import Event, Mode
from umarray.errors import PipelineError
from umarray.pipeline.batch import Batch
from umarray.pipeline.engine import END, WAKE, Engine
from umarray.pipeline.kernel_lock import kernel_turn
from umarray.pipeline.lanes import InOrder, Lane
from umarray.pipeline.ring import Job, Role, Slot, State

SOURCE_PATIENCE = 0.5
"""Seconds that the end waits for a source that is being read; its thread ends later, without touching a slot."""

SIGNALS = 0.5
"""Seconds after which a wait begins anew: a signal that came just before the thread slept is seen only then."""


class _Worker(threading.Thread):
    stage = "source"


@final
class Run:
    """One iteration over `items`; `empty` makes the error for a source that gives none."""

    def __init__(
        self,
        engine: Engine,
        items: Iterator[Any],
        compute: Callable[[Any], Any] | None,
        workers: int,
        empty: Callable[[], Exception],
    ) -> None:
        self._engine = engine
        self._items = items
        self._compute = compute
        self._empty = empty
        self._count = 0
        self._exhausted = False
        self._stopping = False
        self._error: BaseException | None = None
        self._turn = threading.Lock()
        self._failing = threading.Lock()
        self._at = -1
        self._current: tuple[Batch, Event] | None = None
        self.finished = False
        transport = engine.transport
        self._transfer = self._back = None
        if transport.stream is not None:
            fail = self._failer("transfer")
            self._transfer = Lane("transfer", self._move, fail, engine.driver, transport.stream, transport.device)
        if transport.back_stream is not None:
            fail = self._failer("back")
            work = transport.bring_home
            self._back = Lane("back", work, fail, engine.driver, transport.back_stream, transport.device)
        # Of this iteration alone, so that a late `stop` cannot reach the next one.
        self._queues: list[SimpleQueue[Slot | None]] = []
        self._order: InOrder[Any] = InOrder(self._arrive if self._transfer is None else self._transfer.put)
        self._workers = [
            _Worker(target=self._prepare, name=f"umarray-prep-{number}", daemon=True) for number in range(workers)
        ]

    def start(self) -> None:
        """Start the threads."""
        self._engine.restart()
        self._queues = [ring.free for ring in self._engine.rings()]
        try:
            for thread in (self._transfer, self._back, *self._workers):
                if thread is not None:
                    thread.start()
        except BaseException:
            self.finish()
            raise

    # Preparation threads

    def _prepare(self) -> None:
        engine, ring, stage, index = self._engine, self._engine.transport.writing, "source", -1
        worker = threading.current_thread()
        assert isinstance(worker, _Worker)
        try:
            while True:
                worker.stage = stage = "source"
                with self._turn:
                    slot = None if self._exhausted else ring.take()
                    if slot is None:
                        return
                    slot.go(State.FILLING, Role.PREP)
                    index = self._count
                    start = perf_counter()
                    try:
                        item = next(self._items)
                    except StopIteration:
                        if index == 0:
                            raise self._empty() from None
                        self._exhausted = True
                        ring.put(slot, Role.PREP, slot.after)
                        self._order.put(index, END)
                        return
                    if self._stopping:
                        return
                    worker.stage = stage = "prep"
                    self._count += 1
                    engine.clock.ran("source", index, start, perf_counter())
                job = engine.write(slot, item, index)
                del item
                self._order.put(index, job)
        except BaseException as error:
            self.fail(stage, index, error)

    # Transfer thread, or a preparation thread where nothing travels

    def _move(self, message: Any) -> None:
        if not self._stopping:
            self._arrive(message)

    def _arrive(self, message: Any) -> None:
        if message is END or self._engine.transport.move(message):
            self._engine.inbox.put(message)

    # Any thread

    def _failer(self, stage: str) -> Callable[[BaseException], None]:
        return lambda error: self.fail(stage, -1, error)

    def fail(self, stage: str, index: int, error: BaseException) -> None:
        """Keep the error if it is the first one, and wake everyone."""
        with self._failing:
            if self._error is None and not self._stopping:
                if isinstance(error, StopIteration):  # would end the loop as if all were well
                    error, cause = PipelineError(f"{stage} raised StopIteration"), error
                    error.__cause__ = cause
                if hasattr(error, "add_note"):
                    where = f" of batch {index}" if index >= 0 else ""
                    error.add_note(f"raised in the stage {stage!r}{where} of an umarray.Pipeline")
                self._error = error
        self.stop()

    def stop(self) -> None:
        """Wake everyone to end. Takes no lock."""
        self._stopping = True
        for queue in self._queues:
            queue.put(None)
        if self._transfer is not None:
            self._transfer.stop()
        self._engine.inbox.put(WAKE)

    # The thread that iterates

    def step(self) -> Any:
        """The next result, or batch. StopIteration at the end; the first error of any stage, once."""
        if self.finished or (self._stopping and self._error is None):
            self.finish()
            raise StopIteration
        try:
            self._retire()
            job = self._receive()
            if job is not None:
                return self._consume(job)
        except Exception as error:
            if error is not self._error:
                self.fail("compute", self._at, error)
            self._raise()
        except BaseException as error:  # Ctrl-C comes out at once; `finish` follows
            if error is self._error:
                self._raise()
            self.stop()
            raise
        self.finish()
        if self._error is not None:  # the last slots could not be brought home
            self._raise()
        raise StopIteration

    def _raise(self) -> None:
        self.finish()
        error, self._error = self._error, None
        try:
            assert error is not None
            raise error
        finally:
            del error

    def _receive(self) -> Job | None:
        engine = self._engine
        while True:
            self._drain()
            if self._error is not None:
                raise self._error
            if engine.ready:
                return engine.ready.popleft()
            if engine.ended:
                return None
            if engine.held():
                gc.collect()
                self._drain()
                if held := engine.held():
                    raise self._all_held(held)
                continue
            try:
                self._handle(engine.inbox.get(timeout=SIGNALS), None)
            except Empty:
                continue

    def _all_held(self, held: list[Slot]) -> PipelineError:
        return PipelineError(
            f"all {len(held)} slots are held by results that share their memory (of batches"
            f" {', '.join(str(slot.batch) for slot in held)}), so no batch can follow: copy what is to be kept"
            f" (result.copy(), or out=umarray.HOST), or ask for more than slots={len(held)}"
        )

    def _consume(self, job: Job) -> Any:
        engine, self._at = self._engine, job.index
        batch = engine.lend(job)
        start = engine.mark()
        if self._compute is None:
            self._current = (batch, start)
            return batch
        try:
            with kernel_turn() if engine.driver.mode is Mode.HOST else nullcontext():
                result = self._compute(batch)
        except BaseException:
            batch.close()  # the traceback keeps it
            raise
        del batch
        self._computed(job.index, start)
        return result

    def _retire(self) -> None:
        """The batch that the loop was handed is not used any more."""
        if self._current is not None:
            (batch, start), self._current = self._current, None
            batch.close()
            self._computed(batch.index, start)

    def _computed(self, index: int, start: Event) -> None:
        end = self._engine.mark()
        self._engine.clock.queued("compute", index, start, end)
        self._drain(end)
        self._engine.clock.settle()

    def _drain(self, read: Event | None = None) -> None:
        inbox = self._engine.inbox
        while not inbox.empty():
            self._handle(inbox.get(), read)

    def _handle(self, message: Any, read: Event | None) -> None:
        slot = self._engine.handle(message, read)
        if slot is not None:
            assert self._back is not None
            self._back.put(slot)

    def _attempt(self, step: Callable[[], None]) -> None:
        try:
            step()
        except Exception as error:  # the threads have to end all the same
            self.fail("compute", self._at, error)

    def finish(self) -> None:
        """End every thread, and take back what is not held. May be called again where it was interrupted.

        Notes
        -----
        Waits for preparation that runs, as a thread cannot be ended from outside, and not for a source that is read.
        """
        if self.finished:
            return
        self._attempt(self._retire)
        if self._engine.ended and self._back is not None:  # nothing is under way but the last slots, to the host
            self._back.stop()
            self._back.join()
        self.stop()
        for worker in self._workers:
            while worker.is_alive():
                worker.join(SOURCE_PATIENCE)
                if worker.stage == "source":
                    break
        if self._transfer is not None:
            self._transfer.join()
        self._attempt(self._drain)
        if self._back is not None:
            self._back.stop()
            self._back.join()
        self.finished = True

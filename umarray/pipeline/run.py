"""One iteration of a pipeline: its threads, and the steps of the thread that iterates.

What the preparation threads (`feed`) hand on goes to the transfer thread, or where nothing travels straight to the
inbox. The iterating thread waits in one place only, for the inbox. Whoever fails first is the one whose error is kept;
every waiting place is woken then, and what is running ends by itself.
"""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from queue import Empty, SimpleQueue
from typing import Any, final

from umarray.drivers.base import Event, Mode
from umarray.errors import ClosedError, ForkedProcess, PipelineError
from umarray.pipeline.batch import Batch
from umarray.pipeline.engine import END, WAKE, Engine
from umarray.pipeline.feed import Feed
from umarray.pipeline.first_error import FirstError
from umarray.pipeline.kernel_lock import kernel_turn
from umarray.pipeline.lanes import Lane
from umarray.pipeline.ring import Job, Slot

SIGNALS = 0.5
"""Seconds after which a wait begins anew: a signal that came just before the thread slept is seen only then."""

CUT_OFF = "this iteration is over: its pipeline was closed or iterated anew before its end"
WITHIN = "a pipeline cannot be closed or iterated by its own source, prep or compute: leave the loop over it first"


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
        self._compute = compute
        self._stopping = False
        self._failure = FirstError()
        self._using = threading.RLock()  # by the thread that iterates; another one may close the pipeline
        self._computing = False
        self._over = False  # whether its end has come out: all results, or an error
        self._process = os.getpid()
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
        out = self._arrive if self._transfer is None else self._transfer.put
        self._feed = Feed(engine, items, workers, out, self.fail, empty)

    def start(self) -> None:
        """Start the threads."""
        self._engine.restart()
        self._queues = [ring.free for ring in self._engine.rings()]
        try:
            for thread in (self._transfer, self._back, self._feed):
                if thread is not None:
                    thread.start()
        except BaseException:
            self.finish()
            raise

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
        if not self._stopping:
            self._failure.keep(stage, index, error)
        self.stop()

    def stop(self) -> None:
        """Wake everyone to end. Takes no lock."""
        self._stopping = self._feed.stopping = True
        for queue in self._queues:
            queue.put(None)
        if self._transfer is not None:
            self._transfer.stop()
        self._engine.inbox.put(WAKE)

    # The thread that iterates

    @property
    def left(self) -> bool:
        """Whether nobody takes results any more: the loop was left, or an error ended it."""
        return self._stopping

    def step(self) -> Any:
        """The next result, or batch. StopIteration at the end; the first error of any stage, once.

        Raises
        ------
        ClosedError
            The pipeline was closed or iterated anew in the meantime: this is not the end of the source.
        ForkedProcess
            The threads are another process's.
        """
        if os.getpid() != self._process:
            raise ForkedProcess(
                "this iteration's threads stayed in the parent process: iterate in the process that began"
            )
        with self._using:
            return self._step()

    def _step(self) -> Any:
        if self._computing:
            raise PipelineError(WITHIN)
        if self._over:
            raise StopIteration
        if self.finished:  # the inbox is another iteration's by now
            self._over = True
            raise ClosedError(CUT_OFF)
        try:
            self._retire()
            job = self._receive()
            if job is not None:
                return self._consume(job)
        except Exception as error:
            if error is not self._failure.error:
                self.fail("compute", self._at, error)
            self._end()
            raise
        except BaseException as error:  # Ctrl-C comes out at once; `finish` follows
            self._over = True
            if error is self._failure.error:
                self._end()
            self.stop()
            raise
        self._end()
        raise StopIteration

    def _end(self) -> None:
        self._over = True
        self._finish()
        error = self._failure.take()
        try:
            if error is not None:
                raise error
        finally:
            del error

    def _receive(self) -> Job | None:
        engine = self._engine
        while True:
            self._drain()
            if self._failure.error is not None:
                raise self._failure.error
            if self._stopping:
                raise ClosedError(CUT_OFF)
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
        self._computing = True
        try:
            with kernel_turn() if engine.driver.mode is Mode.HOST else nullcontext():
                result = self._compute(batch)
        except BaseException:
            batch.close()  # the traceback keeps it
            raise
        finally:
            self._computing = False
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

        Raises
        ------
        PipelineError
            Called by what must end first: the pipeline's own source, prep or compute.

        Notes
        -----
        Safe from any thread. Waits for compute and preparation that run, as a thread cannot be ended from outside, and
        not for a source that is read.
        """
        if self.finished or os.getpid() != self._process:  # a forked child has no threads to end
            return
        if self._feed.current():
            raise PipelineError(WITHIN)
        if not self._using.acquire(blocking=False):
            self.stop()  # the thread that iterates lets go then
            self._using.acquire()
        try:
            if self._computing:
                raise PipelineError(WITHIN)
            self._finish()
        finally:
            self._using.release()

    def _finish(self) -> None:
        if self.finished:
            return
        self._attempt(self._retire)
        if self._engine.ended and self._back is not None:  # nothing is under way but the last slots, to the host
            self._back.stop()
            self._back.join()
        self.stop()
        self._feed.join()
        if self._transfer is not None:
            self._transfer.join()
        self._attempt(self._drain)
        if self._back is not None:
            self._back.stop()
            self._back.join()
        self.finished = True

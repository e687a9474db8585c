"""One iteration of a pipeline: the steps of the thread that iterates.

It waits in one place, the inbox. Where preparation has no thread of its own it prepares the next batch instead:
launches being asynchronous, the device computes the one before meanwhile.
"""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from queue import Empty
from time import perf_counter
from typing import Any, TypeVar, final

from umarray.drivers.base import Event, Mode
from umarray.errors import ClosedError, ForkedProcess, PipelineError
from umarray.pipeline.batch import Batch
from umarray.pipeline.crew import Crew
from umarray.pipeline.engine import Engine
from umarray.pipeline.kernel_lock import kernel_turn
from umarray.pipeline.pace import Pace
from umarray.pipeline.shown import shown
from umarray.pipeline.slots import Job

T = TypeVar("T")

SIGNALS = 0.5
"""Seconds after which a wait begins anew: a signal that came just before the thread slept is seen only then."""

CUT_OFF = "this iteration is over: its pipeline was closed or iterated anew before its end"
WITHIN = "a pipeline cannot be closed or iterated by its own source, prep or compute: leave the loop over it first"
FORKED = "this iteration's threads stayed in the parent process: iterate in the process that began"
_FREE: AbstractContextManager[None] = nullcontext()


@final
class Run:
    """One iteration over `items`.

    Parameters
    ----------
    workers, empty
        As `Crew` takes them; `pace` says whether the threads prepare.
    grouped : bool
        Items may be read before they are needed: the source waits for nothing.
    """

    def __init__(
        self,
        engine: Engine,
        items: Iterator[Any],
        compute: Callable[[Any], Any] | None,
        workers: int,
        empty: Callable[[], Exception],
        pace: Pace,
        grouped: bool = False,
    ) -> None:
        self._engine = engine
        self._crew = Crew(engine, items, workers, empty)
        self._compute = compute
        self._pace = pace
        self._most = engine.group if grouped else 1
        self._began = False  # to prepare in this thread
        self._using = threading.RLock()  # by the thread that iterates; another one may close the pipeline
        self._within = False  # the user's own code, called by the thread that iterates
        self._over = False  # whether its end has come out: all results, or an error
        self._process = os.getpid()
        self._at = -1
        self._current: tuple[Batch, Event | None] | None = None
        self.finished = False

    def start(self) -> None:
        """Start the threads."""
        self._engine.restart()
        self._pace.begin()
        try:
            self._crew.start(self._pace.threads)
        except BaseException:
            self.finish()
            raise

    def stop(self) -> None:
        """Wake everyone to end. Takes no lock; from any thread."""
        self._crew.stop()

    @property
    def left(self) -> bool:
        """Whether nobody takes results any more: the loop was left, or an error ended it."""
        return self._crew.stopping

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
            raise ForkedProcess(FORKED)
        with self._using:
            return self._step()

    def _step(self) -> Any:
        if self._within:
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
            if error is not self._crew.error:
                self._crew.fail("compute", self._at, error)
            self._end()
            raise
        except BaseException as error:  # Ctrl-C comes out at once; `finish` follows
            self._over = True
            if error is self._crew.error:
                self._end()
            self.stop()
            raise
        self._end()
        raise StopIteration

    def _end(self) -> None:
        self._over = True
        self._finish()
        try:
            if (error := self._crew.take_error()) is not None:
                raise error
        finally:
            del error

    def _receive(self) -> Job | None:
        engine, crew = self._engine, self._crew
        self._set_pace()
        while True:
            resting = crew.feed.resting  # asked first: what was prepared before is in the inbox then
            self._drain()
            if crew.error is not None:
                raise crew.error
            if crew.stopping:
                raise ClosedError(CUT_OFF)
            job = engine.next_ready()
            if job is None and engine.ended:
                return None
            if engine.held():
                gc.collect()
                self._drain()
                if (held := engine.held()) and not (job is None and resting and self._called(crew.feed.ends)):
                    raise crew.error or self._all_held(held)
                if held:
                    return None
            elif job is not None:
                return job
            elif resting and not (crew.feed.ended or engine.transport.writing.free.empty()):
                self._called(self._prepare)
            else:
                asked = perf_counter()
                with suppress(Empty):
                    self._handle(engine.inbox.get(timeout=SIGNALS), None)
                self._pace.waited(perf_counter() - asked)

    def _set_pace(self) -> None:
        pace, feed = self._pace, self._crew.feed
        pace.step(perf_counter())
        self._engine.clock.sparse = pace.short
        if not pace.threads:
            feed.rest()
        elif feed.asleep and feed.resting and not self._engine.ended:
            feed.wake()

    def _prepare(self) -> None:  # one batch, or a group of them
        begun = perf_counter()
        waited = self._crew.feed.prepare(self._most if self._began else 1)
        self._pace.prepared(perf_counter() - begun - waited, waited)
        self._began = True

    def _called(self, call: Callable[[], T]) -> T | None:
        """Call what runs the user's source and prep; an error of theirs is kept with its stage and batch."""
        self._within = True
        try:
            return call()
        except Exception as error:
            at = self._crew.feed.at
            self._crew.fail(at.stage, at.index, error)
            return None
        finally:
            self._within = False

    def _all_held(self, held: list[int]) -> PipelineError:
        slots, batches = self._engine.slots, ", ".join(map(str, held))
        return PipelineError(
            f"all {slots} slots are held by results that share their memory (of batches {batches}), so no batch can"
            f" follow: copy what is to be kept (result.copy(), or out=umarray.HOST), or ask for more than slots={slots}"
        )

    def _consume(self, job: Job) -> Any:
        engine = self._engine
        batch = engine.lend(job, stream := engine.stream())
        index = self._at = batch.index
        start = engine.driver.record(stream, engine.device, timed=True) if engine.clock.times(index) else None
        if self._compute is None:
            self._current = (batch, start)
            return batch
        self._within = True
        try:
            with kernel_turn() if engine.driver.mode is Mode.HOST else _FREE, shown("compute", index):
                result = self._compute(batch)
        except BaseException:
            batch.close()  # the traceback keeps it
            raise
        finally:
            self._within = False
        del batch
        self._computed(index, start)
        return result

    def _retire(self) -> None:
        """The batch that the loop was handed is not used any more."""
        if self._current is not None:
            (batch, start), self._current = self._current, None
            batch.close()
            self._computed(batch.index, start)

    def _computed(self, index: int, start: Event | None) -> None:
        clock, end = self._engine.clock, None
        if start is None:
            clock.passed()
        else:
            end = self._engine.mark(timed=True)
            clock.queued("compute", index, start, end)
        self._drain(end)
        clock.settle()

    def _drain(self, read: Event | None = None) -> None:
        inbox = self._engine.inbox
        while not inbox.empty():
            self._handle(inbox.get(), read)

    def _handle(self, message: Any, read: Event | None) -> None:
        slot = self._engine.handle(message, read)
        if slot is not None:
            self._crew.send_home(slot)

    def _attempt(self, step: Callable[[], None]) -> None:
        try:
            step()
        except Exception as error:  # the threads have to end all the same
            self._crew.fail("compute", self._at, error)

    def finish(self) -> None:
        """End every thread, and take back what is not held. May be called again where it was interrupted.

        Raises
        ------
        PipelineError
            Called by what must end first: the pipeline's own source, prep or compute.

        Notes
        -----
        Safe from any thread. Waits for compute and preparation that run, as a thread cannot be ended from outside, and
        not for a source that is read by a thread of its own.
        """
        if self.finished or os.getpid() != self._process:  # a forked child has no threads to end
            return
        if self._crew.feed.current():
            raise PipelineError(WITHIN)
        if not self._using.acquire(blocking=False):
            self.stop()  # the thread that iterates lets go then
            self._using.acquire()
        try:
            if self._within:
                raise PipelineError(WITHIN)
            self._finish()
        finally:
            self._using.release()

    def _finish(self) -> None:
        if self.finished:
            return
        self._attempt(self._retire)
        if self._engine.ended:  # nothing is under way but the last slots, to the host
            self._crew.end_homing()
        self.stop()
        self._crew.join()
        self._attempt(self._drain)
        self._crew.end_homing()
        self.finished = True

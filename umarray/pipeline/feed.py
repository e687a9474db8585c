"""Items from the source, prepared in slots: by threads of their own, or by the thread that iterates.

Whoever prepares takes a free slot, then the next item: in this order and one at a time, so that the items under way are
always the oldest ones. What is prepared is handed on in the order of the items.

Threads can be sent to rest and woken again while items are under way. At rest each has handed on what it had begun, and
then `prepare` may be called by the thread that iterates.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from time import perf_counter
from typing import Any, final

from umarray.pipeline.engine import END, WAKE, Engine
from umarray.pipeline.lanes import InOrder
from umarray.pipeline.slots import Job, Role, State

SOURCE_PATIENCE = 0.5
"""Seconds that the end waits for a source that is being read; its thread ends later, without touching a slot."""

GROUP_SECONDS = 0.5e-3
"""A group of small batches is closed when preparing it has taken so long, full or not."""


@final
class At:
    """Where a thread that prepares is: what an error of its own is to be told with."""

    __slots__ = ("index", "stage")

    def __init__(self) -> None:
        self.stage = "source"
        self.index = -1


class _Worker(threading.Thread):
    at: At


@final
class Feed:
    """Prepares `items`.

    Parameters
    ----------
    workers : int
        Threads of its own; they begin with `wake`.
    out : callable
        Is handed each `Job`, then END; called by one thread at a time, in the order of the items.
    fail : callable
        Is told the stage, the batch and the error that ended a thread.
    empty : callable
        Makes the error for a source that gives no item.

    Attributes
    ----------
    at : At
        Where `prepare` is.
    asleep : bool
        Whether the threads are to rest.
    ended : bool
        The source has no more, and END was handed on.
    """

    def __init__(
        self,
        engine: Engine,
        items: Iterator[Any],
        workers: int,
        out: Callable[[Any], None],
        fail: Callable[[str, int, BaseException], None],
        empty: Callable[[], Exception],
    ) -> None:
        self._engine = engine
        self._items = items
        self._order: InOrder[Any] = InOrder(out)
        self._fail = fail
        self._empty = empty
        self._count = 0  # items taken
        self._jobs = 0  # slots taken
        self._exhausted = False  # the source has said so
        self.ended = False
        self._ahead: list[Any] = []  # an item that was read to see whether there is one
        self._turn = threading.Lock()
        self._wakes: SimpleQueue[None] = SimpleQueue()
        self._at_work = 0  # threads that do not rest; changed with `_turn` held
        self.at = At()
        self.asleep = True
        self.stopping = False
        self._waited = 0.0
        self._workers = [
            _Worker(target=self._work, name=f"umarray-pipeline-prep-{number}", daemon=True) for number in range(workers)
        ]

    @property
    def resting(self) -> bool:
        """Whether no thread of its own prepares, so that `prepare` may be called."""
        return self._at_work == 0

    def wake(self) -> None:
        """Let the threads prepare. All of them rest, or have not begun."""
        with self._turn:
            self.asleep, self._at_work = False, len(self._workers)
        for worker in self._workers:
            if worker.ident is None:
                worker.at = At()
                worker.start()
            else:
                self._wakes.put(None)

    def rest(self) -> None:
        """Let each thread rest when it has handed on what it is at; a WAKE tells when all do."""
        self.asleep = True

    def stop(self) -> None:
        """End the threads, once a None is in the ring that is written too. Takes no lock."""
        self.stopping = True
        for _ in self._workers:
            self._wakes.put(None)

    def current(self) -> bool:
        """Whether the calling thread is one of these."""
        return threading.current_thread() in self._workers

    def join(self) -> None:
        """Wait for preparation that runs, and not for a source that is read."""
        for worker in self._workers:
            while worker.is_alive():
                worker.join(SOURCE_PATIENCE)
                if worker.at.stage == "source":
                    break

    def prepare(self, most: int = 1) -> float:
        """Prepare up to so many batches as one job, in the calling thread, and hand it on; or else END.

        Seconds that it waited for the slot.
        """
        self._waited = 0.0
        self._prepare(self.at, most)
        return self._waited

    def ends(self) -> bool:
        """Whether the source has no more items, which may take reading one. As `prepare`, in the calling thread."""
        return self._ends(self.at)

    def _work(self) -> None:
        worker = threading.current_thread()
        assert isinstance(worker, _Worker)
        try:
            while self._rested(worker.at) and self._prepare(worker.at):
                pass
        except BaseException as error:
            self._fail(worker.at.stage, worker.at.index, error)

    def _rested(self, at: At) -> bool:
        """Rest where that is asked for; False at the end."""
        at.stage = "source"
        while self.asleep and not self.stopping:
            with self._turn:
                if not self.asleep:
                    break
                self._at_work -= 1
                if self._at_work == 0:
                    self._engine.inbox.put(WAKE)
            self._wakes.get()
        return not self.stopping

    def _prepare(self, at: At, most: int = 0) -> bool:
        """Prepare one job, of one batch where a thread of our own does it; False where there is no more to do."""
        ring = self._engine.transport.writing
        with self._turn:
            at.stage, at.index = "source", self._count
            slot = None if self.ended else ring.take()
            if slot is None:
                return False
            if self.asleep and not most:  # asked to rest while it waited for the slot
                ring.free.put(slot)
                return True
            slot.go(State.FILLING, Role.PREP)
            number, item = self._jobs, self._next(at)
            if item is END:
                ring.put(slot, Role.PREP, slot.after)
                self.ended = True
                self._order.put(number, END)
                return False
            if self.stopping:
                return False
            self._jobs += 1
        if slot.after is not None:
            asked = perf_counter()
            slot.after.wait()
            if most:
                self._waited = perf_counter() - asked
        job, begun = Job(slot, []), perf_counter()
        self._engine.write(job, item, at.index)
        while len(job.parts) < most and perf_counter() - begun < GROUP_SECONDS and not self._ends(at):
            self._engine.write(job, self._next(at), at.index)
        slot.go(State.FILLED, Role.PREP)
        self._order.put(number, job)
        return True

    def _next(self, at: At) -> Any:
        """The next item of the source, or END."""
        if self._ends(at):
            return END
        at.stage, at.index = "prep", self._count
        self._count += 1
        return self._ahead.pop()

    def _ends(self, at: At) -> bool:
        if self._ahead or self._exhausted:
            return self._exhausted
        at.stage, at.index = "source", self._count
        start = perf_counter()
        try:
            self._ahead.append(next(self._items))
        except StopIteration:
            if self._count == 0:
                raise self._empty() from None
            self._exhausted = True
        else:
            self._engine.clock.ran("source", self._count, start, perf_counter())
        return self._exhausted

"""The threads of an iteration that take items from the source and prepare them.

Each takes a free slot, then the next item: in this order and one thread at a time, so that the items under way are
always the oldest ones. What it has prepared is handed on in the order of the items.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any, final

from umarray.pipeline.engine import END, Engine
from umarray.pipeline.lanes import InOrder
from umarray.pipeline.ring import Role, State

SOURCE_PATIENCE = 0.5
"""Seconds that the end waits for a source that is being read; its thread ends later, without touching a slot."""


class _Worker(threading.Thread):
    stage = "source"


@final
class Feed:
    """Prepares `items` in `workers` threads.

    Parameters
    ----------
    out : callable
        Is handed each `Job`, then END; called by one thread at a time, in the order of the items.
    fail : callable
        Is told the stage, the batch and the error that ended a thread.
    empty : callable
        Makes the error for a source that gives no item.
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
        self._count = 0
        self._exhausted = False
        self._turn = threading.Lock()
        self.stopping = False
        """Set it, and put None into the ring that is written, to end the threads."""
        self._workers = [
            _Worker(target=self._prepare, name=f"umarray-pipeline-prep-{number}", daemon=True)
            for number in range(workers)
        ]

    def start(self) -> None:
        """Start the threads."""
        for worker in self._workers:
            worker.start()

    def current(self) -> bool:
        """Whether the calling thread is one of these."""
        return threading.current_thread() in self._workers

    def join(self) -> None:
        """Wait for preparation that runs, and not for a source that is read."""
        for worker in self._workers:
            while worker.is_alive():
                worker.join(SOURCE_PATIENCE)
                if worker.stage == "source":
                    break

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
                    if self.stopping:
                        return
                    worker.stage = stage = "prep"
                    self._count += 1
                    engine.clock.ran("source", index, start, perf_counter())
                job = engine.write(slot, item, index)
                del item
                self._order.put(index, job)
        except BaseException as error:
            self._fail(stage, index, error)

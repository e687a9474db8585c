"""Preparation threads: items in order, the first error told, an end that does not wait for the source."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from queue import SimpleQueue
from time import monotonic
from typing import Any

import pytest

from umarray.drivers.host import HostDriver
from umarray.pipeline.engine import END, Engine
from umarray.pipeline.feed import SOURCE_PATIENCE, Feed
from umarray.pipeline.report import Clock
from umarray.pipeline.structure import Spec

PATIENCE = 10.0


class Lab:
    """A feed whose jobs are taken at once, so that their slots are free again."""

    def __init__(self, items: Iterator[Any], workers: int = 1, slots: int = 3, prep: Any = None) -> None:
        driver = HostDriver()
        self.engine = Engine(driver, 0, Spec(4), slots, "host", prep or (lambda item, slot: item), Clock(driver))
        self.engine.restart()
        self.seen: SimpleQueue[Any] = SimpleQueue()
        self.failed: SimpleQueue[Any] = SimpleQueue()
        self.feed = Feed(
            self.engine, items, workers, self.take, lambda *what: self.failed.put(what), lambda: ValueError("empty")
        )

    def take(self, job: Any) -> None:
        self.seen.put(job if job is END else job.meta)
        if job is not END:
            ring = self.engine.transport.writing
            job.slot.state = type(job.slot.state).FREE
            ring.free.put(job.slot)


@pytest.mark.parametrize("workers", [1, 4])
@pytest.mark.parametrize("slots", [2, 5])
def test_jobs_come_in_the_order_of_their_items_and_then_the_end(workers: int, slots: int) -> None:
    lab = Lab(iter(range(100)), workers, slots)
    lab.feed.start()
    lab.feed.join()
    assert [lab.seen.get_nowait() for _ in range(101)] == [*range(100), END] and lab.failed.empty()


def test_an_error_is_told_with_its_stage_and_batch() -> None:
    def source() -> Iterator[int]:
        yield from range(3)
        raise LookupError("source")

    def prep(item: int, slot: Any) -> None:
        if item == 1:
            raise ArithmeticError("prep")

    for items, use, expected in ((source(), None, ("source", 3)), (iter(range(9)), prep, ("prep", 1))):
        lab = Lab(items, prep=use)
        lab.feed.start()
        assert lab.failed.get(timeout=PATIENCE)[:2] == expected


def test_a_source_that_gives_nothing_is_an_error() -> None:
    lab = Lab(iter(()))
    lab.feed.start()
    assert str(lab.failed.get(timeout=PATIENCE)[2]) == "empty"


def test_the_end_does_not_wait_for_a_source_that_blocks_nor_touch_a_slot_later() -> None:
    reading, go, prepared = threading.Event(), threading.Event(), list[int]()

    def source() -> Iterator[int]:
        reading.set()
        go.wait(PATIENCE)
        yield 0

    lab = Lab(source(), prep=lambda item, slot: prepared.append(item))
    lab.feed.start()
    assert reading.wait(PATIENCE) and not lab.feed.current()
    lab.feed.stopping = True
    lab.engine.transport.writing.free.put(None)
    begun = monotonic()
    lab.feed.join()
    assert monotonic() - begun < SOURCE_PATIENCE + 1
    go.set()
    for worker in lab.feed._workers:
        worker.join(PATIENCE)
        assert not worker.is_alive()
    assert prepared == [] and lab.failed.empty()

"""Preparation threads: items in order, the first error told, an end that does not wait for the source."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from queue import SimpleQueue
from time import monotonic, sleep
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from umarray.drivers.host import HostDriver
from umarray.pipeline import feed
from umarray.pipeline.engine import END, Engine
from umarray.pipeline.feed import SOURCE_PATIENCE, Feed
from umarray.pipeline.layout import Layout
from umarray.pipeline.report import Clock
from umarray.pipeline.structure import Spec

PATIENCE = 10.0


class Lab:
    """A feed whose jobs are taken at once, so that their slots are free again."""

    def __init__(self, items: Iterator[Any], workers: int = 1, slots: int = 3, prep: Any = None) -> None:
        driver = HostDriver()
        self.engine = Engine(
            driver, 0, Layout(Spec(4)), slots, "host", prep or (lambda item, slot: item), Clock(driver), group=4
        )
        self.engine.restart()
        self.seen: SimpleQueue[Any] = SimpleQueue()
        self.jobs: list[int] = []
        self.failed: SimpleQueue[Any] = SimpleQueue()
        self.feed = Feed(
            self.engine, items, workers, self.take, lambda *what: self.failed.put(what), lambda: ValueError("empty")
        )

    def take(self, job: Any) -> None:
        if job is END:
            self.seen.put(END)
        else:
            self.jobs.append(len(job.parts))
            for part in job.parts:
                self.seen.put(part.meta)
        if job is not END:
            ring = self.engine.transport.writing
            job.slot.state = type(job.slot.state).FREE
            ring.free.put(job.slot)


@pytest.mark.parametrize("workers", [1, 4])
@pytest.mark.parametrize("slots", [2, 5])
def test_jobs_come_in_the_order_of_their_items_and_then_the_end(workers: int, slots: int) -> None:
    lab = Lab(iter(range(100)), workers, slots)
    lab.feed.wake()
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
        lab.feed.wake()
        assert lab.failed.get(timeout=PATIENCE)[:2] == expected


def test_a_source_that_gives_nothing_is_an_error() -> None:
    lab = Lab(iter(()))
    lab.feed.wake()
    assert str(lab.failed.get(timeout=PATIENCE)[2]) == "empty"


def test_the_end_does_not_wait_for_a_source_that_blocks_nor_touch_a_slot_later() -> None:
    reading, go, prepared = threading.Event(), threading.Event(), list[int]()

    def source() -> Iterator[int]:
        reading.set()
        go.wait(PATIENCE)
        yield 0

    lab = Lab(source(), prep=lambda item, slot: prepared.append(item))
    lab.feed.wake()
    assert reading.wait(PATIENCE) and not lab.feed.current()
    lab.feed.stop()
    lab.engine.transport.writing.free.put(None)
    begun = monotonic()
    lab.feed.join()
    assert monotonic() - begun < SOURCE_PATIENCE + 1
    go.set()
    for worker in lab.feed._workers:
        worker.join(PATIENCE)
        assert not worker.is_alive()
    assert prepared == [] and lab.failed.empty()


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_order_is_kept_whoever_prepares(data: st.DataObject) -> None:
    """Workers finish in any order, rest and wake at any time, and between the caller prepares groups."""
    workers, slots, count = (data.draw(st.integers(*bounds)) for bounds in ((1, 4), (2, 5), (0, 30)))
    late = data.draw(st.sets(st.integers(0, 29), max_size=4))
    turns = data.draw(st.lists(st.sampled_from(["wake", "rest", 1, 2, 4]), max_size=8))
    passed = [threading.Event() for _ in range(30)]

    def prep(item: int, slot: Any) -> int:
        if item in late and workers > 1 and slots > 2 and item + 1 < count and item + 1 not in late:
            passed[item + 1].wait(0.02)  # let the one after be first, where another worker has it
        passed[item].set()
        return item

    lab = Lab(iter(range(count)), workers, slots, prep=prep)
    feed = lab.feed

    def settled() -> bool:
        end = monotonic() + PATIENCE
        while not feed.resting and not feed.ended and lab.failed.empty():
            assert monotonic() < end
            sleep(0.0005)
        return feed.resting

    for turn in turns if count else []:
        if turn == "wake" and feed.resting and not feed.ended:
            feed.wake()
        elif turn == "rest":
            feed.rest()
        elif turn != "wake":
            feed.rest()
            if settled():
                feed.prepare(int(turn))
    feed.rest()
    if settled() and not feed.ended:
        feed.wake()
    feed.join()
    seen = [lab.seen.get_nowait() for _ in range(lab.seen.qsize())]
    if count:
        assert seen == [*range(count), END] and lab.failed.empty()
    else:
        assert seen == [] and str(lab.failed.get(timeout=PATIENCE)[2]) == "empty"
    feed.stop()
    lab.engine.transport.writing.free.put(None)
    for worker in feed._workers:
        worker.join(PATIENCE) if worker.ident is not None else None
        assert not worker.is_alive()


def test_the_caller_prepares_groups_up_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "GROUP_SECONDS", PATIENCE)
    lab = Lab(iter(range(10)))
    for _ in range(4):
        lab.feed.prepare(4)
    assert lab.jobs == [4, 4, 2] and lab.feed.resting
    assert [lab.seen.get_nowait() for _ in range(11)] == [*range(10), END]


def test_looking_whether_the_source_ends_loses_nothing() -> None:
    lab = Lab(iter(range(2)))
    for last in (False, False, True):
        assert [lab.feed.ends() for _ in range(3)] == [last] * 3
        lab.feed.prepare()
    assert [lab.seen.get_nowait() for _ in range(3)] == [0, 1, END]


def test_an_error_in_the_caller_s_thread_comes_out_with_its_place() -> None:
    def source() -> Iterator[int]:
        yield 0
        raise LookupError

    lab = Lab(source())
    lab.feed.prepare()
    with pytest.raises(LookupError):
        lab.feed.prepare()
    assert (lab.feed.at.stage, lab.feed.at.index) == ("source", 1)

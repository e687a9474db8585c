"""Slots of an open pipeline, with no thread: written, moved, lent, taken back, given back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.fake_driver import FakeDriver
from umarray.pipeline.engine import END, WAKE, Engine
from umarray.pipeline.layout import Layout
from umarray.pipeline.report import Clock
from umarray.pipeline.slots import Job, Role, State
from umarray.pipeline.structure import Spec


def make(driver: FakeDriver, transport: str = "staged", prep: Any = None) -> Engine:
    engine = Engine(driver, 0, Layout({"x": Spec((4, 2), "int32")}), 2, transport, prep, Clock(driver))
    engine.restart()
    return engine


def write(engine: Engine, item: Any, index: int = 0) -> Job:
    slot = engine.transport.writing.take()
    assert slot is not None
    slot.go(State.FILLING, Role.PREP)
    job = Job(slot, [])
    engine.write(job, item, index)
    slot.go(State.FILLED, Role.PREP)
    return job


def move(engine: Engine, job: Job) -> None:
    assert engine.transport.move(job)
    job.slot.hold(job.parts)


@pytest.mark.parametrize("transport", ["staged", "managed"])
def test_a_batch_is_what_was_written_and_its_slot_comes_back(fake: FakeDriver, transport: str) -> None:
    engine = make(fake, transport)
    job = write(engine, {"x": np.full((3, 2), 7, "int32")}, 5)
    move(engine, job)
    batch = engine.lend(job, engine.stream())
    fake.synchronize()
    assert (batch.index, batch.length, batch["x"].shape) == (5, 3, (3, 2)) and (batch["x"] == 7).all()
    assert engine.inbox.empty()
    batch.close()
    slot = engine.handle(engine.inbox.get())
    if transport == "managed":
        assert slot is not None and slot.state is State.HOMING
        engine.transport.bring_home(slot)
    assert job.slot.state is State.FREE and engine.transport.reading.free.qsize() == 2
    engine.close()
    assert fake.live == {} and fake.open_streams() == set()


def test_messages_are_acted_on(fake: FakeDriver) -> None:
    engine = make(fake)
    job = write(engine, {"x": np.zeros((4, 2), "int32")})
    for message in (job, WAKE, END):
        assert engine.handle(message) is None
    assert list(engine.ready) == [job] and engine.ended
    engine.restart()
    assert not engine.ready and not engine.ended
    engine.close()


def test_slots_are_held_where_arrays_refer_to_all_of_them(fake: FakeDriver) -> None:
    engine, kept = make(fake), []
    for index in range(2):
        job = write(engine, {"x": np.full((4, 2), index, "int32")}, index)
        move(engine, job)
        assert engine.held() == []
        kept.append(engine.lend(job, engine.stream())["x"])
    assert engine.held() == [0, 1]
    engine.close()
    assert len(fake.live) == 2 and [set(one.ravel().tolist()) for one in kept] == [{0}, {1}]


def test_what_prep_returns_is_meta_and_its_length_counts(fake: FakeDriver) -> None:
    def prep(item: int, slot: Any) -> str:
        slot.length = item
        return "meta"

    engine = make(fake, prep=prep)
    parts = [write(engine, length).parts[0] for length in (1, 3)]
    assert [(part.length, part.meta) for part in parts] == [(1, "meta"), (3, "meta")]
    engine.close()

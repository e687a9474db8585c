"""The stages of a pipeline run one after the other, each waited for: what overlapping is measured against."""

from __future__ import annotations

import gc
from collections.abc import Callable
from contextlib import nullcontext
from time import perf_counter
from typing import Any

from umarray.drivers.base import Event, Mode
from umarray.errors import PipelineError
from umarray.pipeline.engine import Engine
from umarray.pipeline.kernel_lock import kernel_turn
from umarray.pipeline.outbox import Outbox
from umarray.pipeline.slots import Job, Role, State

UNCOUNTED = -1
"""The index of a batch of no iteration; a `Clock` leaves it out."""


def alone(engine: Engine, outbox: Outbox | None, compute: Callable[[Any], Any] | None, item: Any) -> dict[str, float]:
    """Seconds of each stage on one item. No iteration may be under way.

    Raises
    ------
    PipelineError
        Results of an iteration before hold every slot.
    """
    engine.restart()
    _take_back(engine, {})
    if engine.transport.writing.free.empty() or engine.held():
        raise PipelineError("all slots are held by results that share their memory: drop these first")
    seconds: dict[str, float] = {}
    job = _prepare(engine, item, seconds)
    try:
        _move(engine, job, seconds)
        _compute(engine, outbox, compute, job, seconds)
    finally:
        _take_back(engine, seconds)
        if job.slot in engine.transport.reading.lent:
            gc.collect()
            _take_back(engine, seconds)
    return seconds


def _prepare(engine: Engine, item: Any, seconds: dict[str, float]) -> Job:
    slot = engine.transport.writing.take()
    assert slot is not None
    slot.go(State.FILLING, Role.PREP)
    if slot.after is not None:
        slot.after.wait()
    job, start = Job(slot, []), perf_counter()
    engine.write(job, item, UNCOUNTED)
    seconds["prep"] = perf_counter() - start
    slot.go(State.FILLED, Role.PREP)
    return job


def _move(engine: Engine, job: Job, seconds: dict[str, float]) -> None:
    transport, driver = engine.transport, engine.driver
    start = None if transport.stream is None else driver.record(transport.stream, engine.device, timed=True)
    transport.move(job)
    job.slot.hold(job.parts)
    if start is not None:
        assert job.ready is not None
        seconds["transfer"] = _between(engine, start, job.ready)


def _compute(
    engine: Engine, outbox: Outbox | None, compute: Callable[[Any], Any] | None, job: Job, seconds: dict[str, float]
) -> None:
    batch = engine.lend(job, engine.stream())
    if compute is None:
        return
    engine.mark().wait()
    begin = engine.mark(timed=True)
    with kernel_turn() if engine.driver.mode is Mode.HOST else nullcontext():
        result = compute(batch)
    seconds["compute"] = _between(engine, begin, engine.mark(timed=True))
    del batch
    if outbox is not None:
        start = perf_counter()
        outbox.send(result, UNCOUNTED).fetch()
        seconds["out"] = perf_counter() - start


def _between(engine: Engine, start: Event, end: Event) -> float:
    end.wait()
    return engine.driver.elapsed(start, end)


def _take_back(engine: Engine, seconds: dict[str, float]) -> None:
    """Bring home what no array refers to any more."""
    transport = engine.transport
    while not engine.inbox.empty():
        read = engine.mark()
        read.wait()
        slot = engine.handle(engine.inbox.get(), read)
        if slot is not None:
            assert transport.back_stream is not None
            start = engine.driver.record(transport.back_stream, engine.device, timed=True)
            transport.bring_home(slot)
            assert slot.after is not None
            seconds["back"] = _between(engine, start, slot.after)

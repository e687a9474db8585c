"""The stages of a pipeline run one after the other, each waited for: what overlapping is measured against."""

from __future__ import annotations

import gc
from collections.abc import Callable
from time import perf_counter
from typing import Any

from umarray.drivers.base import Mode
from umarray.errors import PipelineError
from umarray.pipeline.engine import Engine
from umarray.pipeline.kernel_lock import kernel_turn
from umarray.pipeline.outbox import Outbox
from umarray.pipeline.ring import Job, Role, State

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
    start = perf_counter()
    job = engine.write(slot, item, UNCOUNTED)
    seconds["prep"] = perf_counter() - start
    return job


def _move(engine: Engine, job: Job, seconds: dict[str, float]) -> None:
    transport = engine.transport
    if transport.stream is None:
        transport.move(job)
        return
    with engine.driver.use_stream(transport.stream, engine.device):
        start = perf_counter()
        transport.move(job)
        assert job.ready is not None
        job.ready.wait()
        seconds["transfer"] = perf_counter() - start


def _compute(
    engine: Engine, outbox: Outbox | None, compute: Callable[[Any], Any] | None, job: Job, seconds: dict[str, float]
) -> None:
    batch = engine.lend(job)
    if compute is None:
        return
    engine.mark().wait()
    start = perf_counter()
    if engine.driver.mode is Mode.HOST:
        with kernel_turn():
            result = compute(batch)
    else:
        result = compute(batch)
    engine.mark().wait()
    seconds["compute"] = perf_counter() - start
    del batch
    if outbox is not None:
        start = perf_counter()
        outbox.send(result, UNCOUNTED).fetch()
        seconds["out"] = perf_counter() - start


def _take_back(engine: Engine, seconds: dict[str, float]) -> None:
    """Bring home what no array refers to any more."""
    transport = engine.transport
    while not engine.inbox.empty():
        read = engine.mark()
        read.wait()
        slot = engine.handle(engine.inbox.get(), read)
        if slot is not None:
            assert transport.back_stream is not None
            with engine.driver.use_stream(transport.back_stream, engine.device):
                start = perf_counter()
                transport.bring_home(slot)
                assert slot.after is not None
                slot.after.wait()
                seconds["back"] = perf_counter() - start

"""The demo's training, through umarray and as a plain NumPy loop, and what both gave."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

import umarray as um
from umarray import events
from umarray.demo.data import BATCH, Batches, Digits, Refused, preparation
from umarray.demo.network import Network
from umarray.drivers import get_driver
from umarray.errors import UmarrayError
from umarray.pipeline.report import Report, slowest

_BYTE = np.dtype(np.uint8)
_IDEAL_ITEMS = 9


@dataclass(frozen=True)
class Results:
    """What the demo prints; the names are those of its JSON."""

    mode: str
    driver: str
    transport: str
    samples: int
    epochs: int
    accuracy: float
    reference_accuracy: float
    max_abs_difference: float
    """Of any weight, to the same training in a plain NumPy loop."""
    step_ms: float
    """Of the epochs after the first, in which code is compiled; of the first where there is no other."""
    stage_ms: dict[str, float]
    ideal_step_ms: float
    """The slowest stage's time, run alone in this process."""
    overlap_efficiency: float
    """The ideal step over the step: 1 where the other stages hide behind the slowest."""
    driver_allocations_after_first_epoch: int
    peak_bytes: int
    escapes: int


def train(digits: Digits, epochs: int, transport: str, records: list[events.StageRan]) -> Results:
    """Train through umarray, then as a plain NumPy loop, and compare.

    Parameters
    ----------
    records : list
        Is filled with what the stages did in the last epoch.

    Raises
    ------
    Refused
        This process cannot run that transport; nothing was trained.

    Notes
    -----
    On the host NumPy's matrix products get one thread: the matrices are small, and preparation wants the other cores.
    """
    from threadpoolctl import threadpool_limits  # comes with scikit-learn, which the digits came from

    batches, prepare = Batches(digits), preparation(digits)
    allocations: list[events.Allocated] = []

    def note(record: events.Record) -> None:
        if isinstance(record, events.StageRan):
            records.append(record)
        elif isinstance(record, events.Allocated):
            allocations.append(record)

    with ExitStack() as stack:
        stack.enter_context(threadpool_limits(1))
        pool = stack.enter_context(um.pool(track=True))
        with pool.persistent():
            network = Network(um.xp, um.asarray)
            test_set = [um.asarray(part) for part in digits.test_set()]

        def compute(batch: Any) -> None:
            network.step(batch["images"], batch["labels"])

        try:
            pipeline = um.Pipeline(batches, prepare, compute, like=like(digits), transport=transport)
            stack.enter_context(pipeline)
        except (UmarrayError, ValueError) as error:
            raise Refused(str(error)) from error
        stack.callback(events.listen(note))
        reports, seconds = [], []
        for batches.epoch in range(epochs):
            records.clear()
            if batches.epoch == 1:
                allocations.clear()
            start = perf_counter()
            with pool.epoch(f"epoch {batches.epoch + 1}"):
                for _ in pipeline:
                    pass
                um.asnumpy(network.weights[-1])  # waits for the last step
            seconds.append(perf_counter() - start)
            reports.append(pipeline.report())
        made = 0 if epochs == 1 else len(allocations)
        accuracy, weights = network.accuracy(*test_set), [um.asnumpy(weight) for weight in network.weights]
        statistics, driver = pool.statistics(), get_driver()
        # This trains some more, so all that counts was read before.
        alone = [pipeline.ideal(item) for item in islice(batches, _IDEAL_ITEMS)]
        ideal = slowest({stage: median(one[stage] for one in alone) for stage in alone[0]}, workers=1)
        plain = reference(digits, epochs)

    step = sum(seconds[1:] or seconds) / (len(batches) * max(epochs - 1, 1))
    return Results(
        mode=driver.mode.value,
        driver=driver.name,
        transport=reports[-1].transport,
        samples=len(digits.images),
        epochs=epochs,
        accuracy=accuracy,
        reference_accuracy=plain.accuracy(*digits.test_set()),
        max_abs_difference=max(float(abs(a - b).max()) for a, b in zip(weights, plain.weights, strict=True)),
        step_ms=step * 1e3,
        stage_ms={stage: spent * 1e3 for stage, spent in stage_seconds(reports).items()},
        ideal_step_ms=ideal * 1e3,
        overlap_efficiency=ideal / step,
        driver_allocations_after_first_epoch=made,
        peak_bytes=statistics.peak_bytes or 0,
        escapes=sum(escape.count for escape in statistics.escapes or ()),
    )


def like(digits: Digits) -> dict[str, um.Spec]:
    """What a slot holds: bytes, an eighth of what float64 images would be."""
    return {"images": um.Spec((BATCH, *digits.images.shape[1:]), _BYTE), "labels": um.Spec((BATCH,), _BYTE)}


def stage_seconds(reports: Sequence[Report]) -> dict[str, float]:
    """Seconds a step of each stage after the first epoch, from the reports at the ends of all epochs."""
    first, last = reports[0], reports[-1]
    if last.steps == first.steps:
        return dict(last.stages)
    spent = {name: last.stages[name] * last.steps - first.stages.get(name, 0.0) * first.steps for name in last.stages}
    return {name: max(0.0, seconds) / (last.steps - first.steps) for name, seconds in spent.items()}


def reference(digits: Digits, epochs: int) -> Network:
    """The same training in a plain NumPy loop, on the same batches, one after another."""
    network, batches, prepare = Network(np, np.asarray), Batches(digits), preparation(digits)
    slot = PlainSlot({name: np.empty(spec.shape, spec.dtype) for name, spec in like(digits).items()})
    for batches.epoch in range(epochs):
        for item in batches:
            prepare(item, slot)
            network.step(slot["images"][: slot.length], slot["labels"][: slot.length])
    return network


class PlainSlot(dict[str, Any]):
    """Arrays under the names of a pipeline's slot, for the loop that has no pipeline."""

    length = 0

"""Batches allocated anew in each step: raw, from CuPy's pools, from an epoch of umarray's.

A step gathers a batch of rows, and makes four activations of it, each let go when the next is there. Batches are of one
size, or of a size that was not seen before, as texts and graphs are. An epoch of umarray's holds all steps of a loop;
"an epoch a batch" begins and ends one around each step. `held` is what the allocator holds at the end over the
peak of what is alive at once, and `driver_allocations` are umarray's in one more loop. Others' managed pools may hold
1 GiB.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

import umarray as um
from benchmarks import guard
from benchmarks.common import Measured, Report, Stopwatch, guarded, parser
from benchmarks.traces import Spy, async_pool
from umarray import hipemu
from umarray.drivers import get_driver
from umarray.drivers.base import Driver, Mode

WIDTH = 1024
BATCH, QUICK = 4096, 64  # rows: 16 MiB
STEPS = 40
LIMIT = 1 << 30  # bytes that others' managed pools may hold


@dataclass(frozen=True)
class Source:
    """Where a step's arrays come from: a `malloc` for CuPy, what it holds, scopes around a loop and a step."""

    malloc: Callable[[int], Any] | None
    held: Callable[[], int] | None = None
    loop: Callable[[], AbstractContextManager[Any]] = nullcontext
    step: Callable[[], AbstractContextManager[Any]] = nullcontext


class Loop:
    """Steps of so many rows at most; called with a source, it goes over them and gives a few numbers of each.

    Parameters
    ----------
    varied : bool
        Each batch of each turn has another number of rows; a turn is the same for every source.
    """

    def __init__(self, driver: Driver, most: int, steps: int, varied: bool) -> None:
        self.driver, self.xp, self.most, self.steps, self.varied = driver, driver.xp, most, steps, varied
        rng = np.random.default_rng(1)
        self.data = self.xp.asarray(rng.standard_normal((2 * most, WIDTH), np.float32))
        self.order = self.xp.asarray(rng.permutation(2 * most))
        self.peak = 3 * most * WIDTH * 4  # a batch or an activation, what comes of it, and what comes of that
        self.room = self.peak * 4 // 3 if varied else self.peak  # of an arena: between blocks of many sizes are gaps
        self.turns: dict[int, int] = {}

    def rows(self, turn: int) -> list[int]:
        if not self.varied:
            return [self.most] * self.steps
        return np.random.default_rng(turn).integers(self.most // 4, self.most, self.steps).tolist()

    def step(self, rows: int) -> Any:
        xp = self.xp
        x = xp.take(self.data, self.order[:rows], axis=0)
        for factor in (0.5, 1.5, 2.0, 0.25):
            x = xp.maximum(x * np.float32(factor), np.float32(0))
        return x[:: max(1, rows // 8), 0].get()

    def __call__(self, source: Source) -> Measured:
        turn = self.turns[id(source)] = self.turns.get(id(source), 0) + 1
        rows, found = self.rows(turn), []
        with self.xp.cuda.using_allocator(source.malloc), Stopwatch(self.driver.synchronize) as watch:
            with source.loop():
                for count in rows:
                    with source.step():
                        found.append(self.step(count))
        return watch.measured(np.concatenate(found))


@contextmanager
def sources(driver: Driver, peak: int, room: int) -> Iterator[dict[str, Source]]:
    """Every allocator that is here; raw managed memory is what the others are compared with."""
    cuda = driver.xp.cuda
    with ExitStack() as stack:
        found: dict[str, Source] = {}
        if driver.mode is Mode.MANAGED:
            stack.enter_context(guard.managed(LIMIT + 2 * peak, driver))
            managed = cuda.MemoryPool(cuda.malloc_managed)
            managed.set_limit(size=LIMIT)
            stack.callback(managed.free_all_blocks)
            found["raw malloc_managed"] = Source(cuda.malloc_managed)
            found["MemoryPool(malloc_managed)"] = Source(managed.malloc, managed.total_bytes)
        plain = cuda.MemoryPool()
        stack.callback(plain.free_all_blocks)
        found |= {"raw malloc": Source(None), "MemoryPool()": Source(plain.malloc, plain.total_bytes)}
        others = async_pool()
        if others is not None:
            found["MemoryAsyncPool"] = Source(others.malloc, others.total_bytes)
        ours = um.pool(room)
        stack.callback(ours.close)
        each = um.pool(room)
        stack.callback(each.close)
        found["umarray, an epoch"] = Source(ours.malloc, ours.total_bytes, loop=lambda: ours.epoch("loop"))
        found["umarray, an epoch a batch"] = Source(each.malloc, each.total_bytes, step=lambda: each.epoch("step"))
        yield found


def measure(report: Report, loop: Loop, name: str) -> None:
    driver, spy = loop.driver, Spy()
    with sources(driver, loop.peak, loop.room) as found:
        report.compare(name, {one: lambda s=source: loop(s) for one, source in found.items()}, per=loop.steps)
        for row in report.rows[-len(found) :]:
            source = found[row["variant"]]
            if row["variant"].startswith("umarray"):
                with spy.watching():
                    loop(source)
                row["driver_allocations"], spy.count = spy.count, 0
            if source.held is not None:
                row["held"] = source.held() / loop.peak
        driver.synchronize()


def main() -> None:
    arguments = parser(__doc__).parse_args()
    report, driver = Report("epochs", arguments), get_driver()
    if driver.mode is Mode.HOST:
        report.skip("epochs", "in host mode NumPy allocates for itself")
        report.finish()
        return
    rows, steps = (QUICK, 4) if report.quick else (BATCH, 8 if hipemu.active() else STEPS)
    with guarded(driver):
        measure(report, Loop(driver, rows, steps, varied=False), f"{steps} batches of one size")
        measure(report, Loop(driver, rows, steps, varied=True), f"{steps} batches of new sizes")
    report.finish()


if __name__ == "__main__":
    main()

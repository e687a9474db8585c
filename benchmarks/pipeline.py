"""How far is a pipeline's step from the slowest stage alone, and from a pinned ring written by hand?

A batch is written by a parallel numba kernel, brought to the device, and computed on for as many passes as make compute
about 0.5, 1 and 2 times as long as preparation. Every variant goes over the same items and must find the same numbers.

A step is the time between the ends of two batches' compute, by events on the device, after the first eighth of the
batches. The ideal is the slowest stage alone: preparation, copy and compute each repeated with nothing beside it (of
compute the longer one of launching it and running it). Without a device the pipeline and the plain loop are there.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from time import perf_counter
from typing import Any

import numba
import numpy as np

import umarray as um
from benchmarks.common import Measured, Report, Stopwatch, guarded, parser, size_of
from benchmarks.rings import SLOTS, PinnedRing, naive
from umarray import hipemu
from umarray.drivers import get_driver
from umarray.drivers.base import Driver, Mode
from umarray.pipeline import choose

COLUMNS = 1024
MOST_PASSES = 100
STEPS = {1 << 20: 400, 4 << 20: 300, 16 << 20: 120, 64 << 20: 40, 128 << 20: 24, 256 << 20: 16}
LARGE = 256 << 20
"""Bytes of a batch from which managed slots are two: what is alive on a shared card stays below 2 GiB."""


@numba.njit(parallel=True, nogil=True, cache=True)
def write(item: int, out: Any) -> None:
    for i in numba.prange(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = np.float32((i * 31 + j * 17 + item) & 255) * np.float32(0.01)


class Case:
    """One size and ratio: the work, and how a run of it is timed."""

    def __init__(self, driver: Driver, nbytes: int, ratio: float, steps: int) -> None:
        self.driver, self.xp = driver, driver.xp
        self.nbytes, self.steps = nbytes, steps
        self.shape = (nbytes // 4 // COLUMNS, COLUMNS)
        self.passes, self.calls = 1, 0
        self.skip = max(1, steps // 8)
        self.marks: list[Any] = []
        self._ring = None if driver.mode is Mode.HOST else PinnedRing(driver.xp, self)
        one = self._alone()
        self.passes = 21
        a_pass = max((self._alone()["compute"] - one["compute"]) / 20, 1e-7)
        wanted = 1 + (ratio * one["prep"] - one["compute"]) / a_pass
        self.passes = min(max(1, round(wanted)), MOST_PASSES)
        self.alone = self._alone()

    def prep(self, item: int, array: Any) -> None:
        write(item, array)

    def compute(self, x: Any) -> Any:
        y = x * np.float32(1.5)
        for _ in range(self.passes):
            self.xp.multiply(y, np.float32(0.999), out=y)
        total = y[:: max(1, len(y) // 16), ::64].sum()
        if self.calls in (self.skip, self.steps - 1):
            self.marks.append(self.driver.record(self.driver.current_stream(0), 0, timed=True))
        self.calls += 1
        return total

    def _alone(self) -> dict[str, float]:
        """Seconds of each stage, repeated with nothing beside it."""
        ring, rounds = self._ring, 10
        host = np.empty(self.shape, "f4") if ring is None else ring.host[0]
        device = host if ring is None else ring.device[0]
        found = {"prep": self._repeat(lambda: self.prep(0, host), rounds)}
        if ring is not None:
            found["copy"] = self._repeat(lambda: ring._copy(0), rounds)
        found["compute"] = self._repeat(lambda: self.compute(device), rounds)
        return found

    def _repeat(self, call: Callable[[], Any], rounds: int) -> float:
        call()
        self.driver.synchronize()
        start = perf_counter()
        for _ in range(rounds):
            call()
        self.driver.synchronize()
        return (perf_counter() - start) / rounds

    def timed(self, run: Callable[[], list[Any]], copies: bool = False) -> Measured:
        """Seconds a step of a run, or on the emulated device what it made happen; `copies`: by hand, each batch."""
        self.calls, self.marks = 0, []
        self.driver.synchronize()
        with Stopwatch(self.driver.synchronize) as watch:
            results = run()
            if copies:
                watch.copied(self.nbytes * self.steps)
        first, last = self.marks
        step = self.driver.elapsed(first, last) / (self.steps - 1 - self.skip)
        return Measured(step, [float(result) for result in results], counts=watch.measured().counts)

    def pipeline(self, transport: str) -> um.Pipeline:
        managed = transport in ("managed", "bus", "direct")
        return um.Pipeline(
            range(self.steps),
            lambda item, slot: write(item, slot["x"]),
            lambda batch: self.compute(batch["x"]),
            like={"x": um.Spec(self.shape, "float32")},
            slots=2 if managed and self.nbytes >= LARGE else SLOTS,
            transport=transport,
        )


def measure(report: Report, driver: Driver, nbytes: int, ratio: float, steps: int) -> None:
    """The rows of one size and ratio."""
    label = f"{size_of(nbytes)}, compute/prep {ratio:g}"
    case = Case(driver, nbytes, ratio, steps)
    variants: dict[str, Callable[[], Any]] = {}
    with ExitStack() as stack:
        opened = {name: stack.enter_context(case.pipeline(name)) for name in ("auto", *choose.possible(driver))}
        for name, p in opened.items():
            variants[f"umarray {name}"] = lambda p=p: case.timed(lambda: list(p))
        if (ring := case._ring) is not None:
            variants["by hand, one thread"] = lambda: case.timed(ring.one_thread, copies=True)
            variants["by hand, own thread"] = lambda: case.timed(ring.own_thread, copies=True)
        variants["naive"] = lambda: case.timed(lambda: naive(case.xp, case), copies=ring is not None)
        timings = report.compare(label, variants, tolerance=1e-5, warmup=2)
        reports = {f"umarray {name}": p.report() for name, p in opened.items()}
    ideal = max(case.alone.values())
    best = min((timings[name].median for name in variants if name.startswith("by hand")), default=0.0)
    for row in report.rows[-len(variants) :]:
        if not hipemu.active():
            median = timings[row["variant"]].median
            row["over_ideal"] = median / ideal
            row |= {"over_by_hand": median / best} if best else {}
        if told := reports.get(row["variant"]):
            row |= {"transport": told.transport, "threads": told.workers, "slots": told.slots}
    if not hipemu.active():
        stages = {f"{stage}_alone_ms": seconds * 1e3 for stage, seconds in case.alone.items()}
        report.add(label, "ideal: slowest stage alone", **stages, median_ms=ideal * 1e3, passes=case.passes)


def main() -> None:
    arguments = parser(__doc__)
    arguments.add_argument("--sizes", type=int, nargs="*", help="MiB of a batch, in place of 1, 4, 16, 64, 128, 256")
    arguments.add_argument("--ratios", type=float, nargs="*", help="compute over preparation, in place of 0.5, 1, 2")
    given = arguments.parse_args()
    report, driver = Report("pipeline", given), get_driver()
    small = given.quick or hipemu.active()
    sizes = [256 << 10] if small else list(STEPS)
    if given.sizes:
        sizes = [mib << 20 for mib in given.sizes]
    ratios = given.ratios or ([1.0] if small else [0.5, 1.0, 2.0])
    with guarded(driver):
        for nbytes in sizes:
            for ratio in ratios:
                measure(report, driver, nbytes, ratio, 12 if small else STEPS.get(nbytes, 16))
    report.finish()


if __name__ == "__main__":
    main()

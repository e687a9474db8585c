"""The pipeline's step beside a pinned ring written by hand, the plain loop, and the ideal: the slowest stage alone.

A batch is written by a parallel numba kernel, brought to the device, and computed on for as many passes as make compute
about 0.5, 1 and 2 times as long as preparation. Each variant goes over the same items; times are seconds a step,
filling and draining included. Without a device only the pipeline and the plain loop are there.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from time import perf_counter
from typing import Any

import numba
import numpy as np

import umarray as um
from benchmarks import guard
from benchmarks.common import Measured, Report, parser
from umarray.drivers import get_driver
from umarray.drivers.base import Driver, Kind, Mode, host_bytes
from umarray.pipeline.report import slowest

COLUMNS = 1024
SLOTS = 3


@numba.njit(parallel=True, nogil=True, cache=True)
def write(item: int, out: Any) -> None:
    for i in numba.prange(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = np.float32((i * 31 + j * 17 + item) & 255) * np.float32(0.01)


class Case:
    """One size and ratio: the work, and the ways to run it."""

    def __init__(self, driver: Driver, nbytes: int, ratio: float, steps: int) -> None:
        self.driver, self.xp, self.steps = driver, driver.xp, steps
        self.spec = um.Spec((nbytes // 4 // COLUMNS, COLUMNS), "float32")
        self.passes = 1
        with self.pipeline() as p:
            alone = p.ideal(0)
            self.passes = 20
            longer = p.ideal(0)
            one = max((longer["compute"] - alone["compute"]) / 19, 1e-7)
            self.passes = max(1, round(1 + (ratio * alone["prep"] - alone["compute"]) / one))
            self.alone = p.ideal(0)

    def prep(self, item: int, slot: Any) -> None:
        write(item, slot["x"])

    def compute(self, x: Any) -> Any:
        y = x * np.float32(1.5)
        for _ in range(self.passes):
            self.xp.multiply(y, np.float32(0.999), out=y)
        return y[:: max(1, len(y) // 16), ::64].sum()

    def pipeline(self, transport: str = "auto") -> um.Pipeline:
        return um.Pipeline(
            range(self.steps),
            self.prep,
            lambda batch: self.compute(batch["x"]),
            like={"x": self.spec},
            slots=SLOTS,
            transport=transport,
        )

    def timed(self, run: Callable[[], list[Any]]) -> Measured:
        self.driver.synchronize()
        start = perf_counter()
        results = run()
        self.driver.synchronize()
        seconds = (perf_counter() - start) / self.steps
        return Measured(seconds, [float(result) for result in results])

    def plain(self) -> list[Any]:
        """Prepare, bring over, compute, one after the other."""
        results, batch = [], np.empty(self.spec.shape, self.spec.dtype)
        for item in range(self.steps):
            write(item, batch)
            results.append(self.compute(self.xp.asarray(batch)))
            self.driver.synchronize()
        return results


class HandRing:
    """A pinned ring as one writes it for one program: a thread that prepares and copies, events both ways."""

    def __init__(self, case: Case) -> None:
        driver, nbytes, self.case = case.driver, case.spec.nbytes, case
        self.pinned = [driver.allocate(nbytes, Kind.PINNED) for _ in range(SLOTS)]
        self.device = [driver.allocate(nbytes, Kind.DEVICE) for _ in range(SLOTS)]
        self.host = [host_bytes(one.address, nbytes, one).view("f4").reshape(case.spec.shape) for one in self.pinned]
        self.arrays = [
            driver.as_array(one.address, nbytes, one, 0).view("f4").reshape(case.spec.shape) for one in self.device
        ]
        self.stream = driver.create_stream(0)

    def run(self) -> list[Any]:
        driver, case = self.case.driver, self.case
        free: SimpleQueue[Any] = SimpleQueue()
        ready: SimpleQueue[Any] = SimpleQueue()
        for number in range(SLOTS):
            free.put((number, None))
        copied: list[Any] = [None] * SLOTS

        def prepare() -> None:
            with driver.use_stream(self.stream, 0):
                for item in range(case.steps):
                    number, read = free.get()
                    if copied[number] is not None:
                        copied[number].wait()
                    write(item, self.host[number])
                    if read is not None:
                        driver.wait(self.stream, read)
                    driver.copy(self.device[number].address, self.pinned[number].address, case.spec.nbytes, self.stream)
                    copied[number] = driver.record(self.stream, 0)
                    ready.put((number, copied[number]))

        thread = threading.Thread(target=prepare)
        thread.start()
        results, stream = [], driver.current_stream()
        for _ in range(case.steps):
            number, arrived = ready.get()
            driver.wait(stream, arrived)
            results.append(case.compute(self.arrays[number]))
            free.put((number, driver.record(stream, 0)))
        thread.join()
        return results

    def close(self) -> None:
        self.case.driver.synchronize()
        self.arrays.clear()
        for allocation in (*self.pinned, *self.device):
            self.case.driver.free(allocation)
        self.case.driver.destroy_stream(self.stream, 0)


def measure(report: Report, driver: Driver, nbytes: int, ratio: float, steps: int) -> None:
    case = Case(driver, nbytes, ratio, steps)
    transports = {Mode.HOST: ["host"], Mode.EXPLICIT: ["staged"], Mode.MANAGED: ["staged", "managed"]}[driver.mode]
    opened = {name: case.pipeline(name).__enter__() for name in transports}
    ring = None if driver.mode is Mode.HOST else HandRing(case)
    variants: dict[str, Callable[[], Any]] = {
        f"umarray {name}": (lambda p=p: case.timed(lambda: list(p))) for name, p in opened.items()
    }
    if ring is not None:
        variants["pinned ring by hand"] = lambda: case.timed(ring.run)
    variants["plain loop"] = lambda: case.timed(case.plain)
    label = f"{nbytes >> 20} MiB" if nbytes >= 1 << 20 else f"{nbytes >> 10} KiB"
    label = f"{label}, compute/prep {ratio:g}"
    try:
        timings = report.compare(label, variants, tolerance=1e-5)
    finally:
        for p in opened.values():
            p.close()
        if ring is not None:
            ring.close()
    ideal = slowest(case.alone, workers=1)
    for row in report.rows[-len(variants) :]:
        row["ideal_over_step"] = ideal / timings[row["variant"]].median
    report.add(
        label,
        "ideal: slowest stage alone",
        **{f"{stage}_alone_ms": seconds * 1e3 for stage, seconds in case.alone.items()},
        median_ms=ideal * 1e3,
    )


def main() -> None:
    arguments = parser(__doc__).parse_args()
    report, driver = Report("pipeline", arguments), get_driver()
    remove = guard.install(driver)
    sizes = [256 << 10] if arguments.quick else [16 << 20, 64 << 20, 128 << 20]
    ratios = [1.0] if arguments.quick else [0.5, 1.0, 2.0]
    for nbytes in sizes:
        for ratio in ratios:
            steps = 4 if arguments.quick else 40
            measure(report, driver, nbytes, ratio, steps)
    remove()
    report.finish()


if __name__ == "__main__":
    main()

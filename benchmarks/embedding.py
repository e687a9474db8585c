"""Random rows of a table that lies on the host: on demand, prefetched by hand, and under ``um.role(table, "table")``.

65,536 rows of 512 bytes, of a table of 256 MiB and of one of 1 GiB. The first look-up is timed with the move of the
table in it, from a table whose pages are on the host; "resident" is a look-up after it. ``ratio`` is over the first
look-up on demand. What is by hand uses managed memory of CuPy's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

import umarray as um
from benchmarks import guard
from benchmarks.common import Measured, Report, Stopwatch, check_same, guarded, parser, size_of
from umarray.drivers import get_driver
from umarray.drivers.base import Driver, Mode, host_bytes
from umarray.places import HOST, Device

SIZES = (256 << 20, 1 << 30)
QUICK = (1 << 20,)
ROWS, WIDTH = 65_536, 128


class Table:
    """A table, and the rows asked for; `on_demand` and `prefetched` are by hand, the others umarray's."""

    def __init__(self, driver: Driver, nbytes: int, rows: int, table: Any) -> None:
        self.driver, self.xp, self.table = driver, driver.xp, table
        count = len(table)
        self.asked = self.xp.asarray(np.random.default_rng(count).integers(0, count, rows))
        self.found = self.xp.empty((rows, WIDTH), np.float32)
        self.memory = host_bytes(table.data.ptr, nbytes, table).view(np.float32).reshape(count, WIDTH)
        self.memory[...] = np.arange(count, dtype=np.float32)[:, None]  # so the rows found are the numbers asked for

    def look_up(self) -> None:
        self.xp.take(self.table, self.asked, axis=0, out=self.found)

    def send_home(self) -> None:
        """The pages lie on the host again, as after the host has written them."""
        self.driver.synchronize()
        self.driver.prefetch(self.table.data.ptr, self.table.nbytes, HOST, self.driver.current_stream())
        self.driver.synchronize()
        if self.driver.host_share(self.table.data.ptr, self.table.nbytes) not in (1.0, None):
            self.memory[:: max(1, 4096 // self.memory.itemsize // WIDTH)] += 0  # the runtime cannot: by touching

    def measured(self, watch: Stopwatch) -> Measured:
        return watch.measured(self.sample(self.found[:, 0]))

    def sample(self, x: Any) -> Any:
        """Some elements, for the check that all found the same."""
        return x[:: max(1, len(x) // 512)].copy().get()

    def on_demand(self) -> Measured:
        self.send_home()
        with Stopwatch(self.driver.synchronize) as watch:
            self.look_up()
        return self.measured(watch)

    def prefetched(self) -> Measured:
        self.send_home()
        with Stopwatch(self.driver.synchronize) as watch:
            self.driver.prefetch(self.table.data.ptr, self.table.nbytes, Device(0), self.driver.current_stream())
            self.look_up()
        return self.measured(watch)

    def with_role(self) -> Measured:
        self.send_home()
        with ExitStack() as scope:
            with Stopwatch(self.driver.synchronize) as watch:
                scope.enter_context(um.role(self.table, "table"))
                self.look_up()
            return self.measured(watch)

    def resident(self) -> Measured:
        with um.role(self.table, "table"):
            self.look_up()
            self.driver.synchronize()
            with Stopwatch(self.driver.synchronize) as watch:
                self.look_up()
            return self.measured(watch)

    def close(self) -> None:
        self.driver.synchronize()
        self.memory = self.table = None

    def plain(self) -> Callable[[], Measured]:
        """Look-ups of a copy in plain device memory, which is not moved in their time: what one can cost at best."""
        copy = self.xp.empty(self.table.shape, np.float32)
        copy.set(self.memory)

        def look_up() -> Measured:
            self.driver.synchronize()
            with Stopwatch(self.driver.synchronize) as watch:
                self.xp.take(copy, self.asked, axis=0, out=self.found)
            return self.measured(watch)

        return look_up


@contextmanager
def by_hand(driver: Driver, nbytes: int) -> Iterator[Any]:
    """A table in managed memory of CuPy's."""
    with guard.managed(nbytes, driver):
        yield driver.xp.ndarray((nbytes // 4 // WIDTH, WIDTH), np.float32, driver.xp.cuda.malloc_managed(nbytes))


@contextmanager
def of_umarray(driver: Driver, nbytes: int) -> Iterator[Any]:
    """A table in a pool of umarray's, which is nobody's current one."""
    pool = um.pool(nbytes + (1 << 20), headroom=0)
    try:
        yield um.empty((nbytes // 4 // WIDTH, WIDTH), np.float32, page_aligned=True, pool=pool)
    finally:
        pool.close()


def measure(report: Report, driver: Driver, nbytes: int, rows: int) -> None:
    """One table after the other: two of 1 GiB are too much for the guard."""
    case, first = f"{rows:,} rows of {size_of(nbytes)}", 0.0
    for where in (by_hand, of_umarray):
        with where(driver, nbytes) as array:
            table = Table(driver, nbytes, rows, array)
            del array
            variants: dict[str, Callable[[], Measured]] = {
                by_hand: {"on demand": table.on_demand, "prefetched": table.prefetched},
                of_umarray: {"umarray, role table": table.with_role, "umarray, resident": table.resident},
            }[where] | ({"plain device memory": table.plain()} if where is of_umarray else {})
            timings = report.compare(case, variants)
            check_same({"the rows asked for": table.sample(table.asked), "rows found": table.sample(table.found[:, 0])})
            variants.clear()
            table.close()
        for row in report.rows[-len(timings) :]:
            cost = row.get("median_ms", row.get("modelled_ms"))
            first = first or cost
            row["ratio"] = cost / first


def main() -> None:
    arguments = parser(__doc__).parse_args()
    report, driver = Report("embedding", arguments), get_driver()
    if driver.mode is not Mode.MANAGED:
        report.skip("embedding", f"in {driver.mode.value} mode no page moves")
        report.finish()
        return
    with guarded(driver):
        for nbytes in QUICK if report.quick else SIZES:
            if guard.alive() + nbytes > guard.LIMIT or nbytes * 3 > driver.memory_info(Device(0)).free:
                report.skip(size_of(nbytes), "the device is too small")
                continue
            measure(report, driver, nbytes, 256 if report.quick else ROWS)
    report.finish()


if __name__ == "__main__":
    main()

"""Random rows of a table that lies on the host: on demand, prefetched by hand, and under ``um.role(table, "table")``.

65,536 rows of 512 bytes, of a table of 256 MiB and of one of 1 GiB. The first look-up is timed with the move of the
table in it, from a table whose pages are on the host; "resident" is a look-up after it. ``ratio`` is over the first
look-up on demand.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import numpy as np

import umarray as um
from benchmarks import guard
from benchmarks.common import Measured, Report, Stopwatch, guarded, parser, size_of
from umarray.drivers import get_driver
from umarray.drivers.base import Driver, Mode, host_bytes
from umarray.places import HOST, Device

SIZES = (256 << 20, 1 << 30)
QUICK = (1 << 20,)
ROWS, WIDTH = 65_536, 128


class Table:
    """A table, the rows asked for, and the ways to look them up. `prefetched` and `on_demand` are by hand."""

    def __init__(self, driver: Driver, nbytes: int, rows: int, stack: ExitStack) -> None:
        self.driver, self.xp = driver, driver.xp
        count = nbytes // 4 // WIDTH
        pool = um.pool(nbytes + (1 << 20), headroom=0)  # for the table alone: it is nobody's current pool
        stack.callback(pool.close)
        self.table = um.empty((count, WIDTH), np.float32, page_aligned=True, pool=pool)
        self.asked = self.xp.asarray(np.random.default_rng(count).integers(0, count, rows))
        self.found = self.xp.empty((rows, WIDTH), np.float32)
        self.memory = host_bytes(self.table.data.ptr, nbytes, self.table).view(np.float32).reshape(count, WIDTH)
        self.memory[...] = np.arange(count, dtype=np.float32)[:, None]

    def look_up(self) -> None:
        self.xp.take(self.table, self.asked, axis=0, out=self.found)

    def send_home(self) -> None:
        """The pages lie on the host again, as after the host has written them."""
        self.driver.synchronize()
        um.move(self.table, to=HOST)
        self.driver.synchronize()
        if self.driver.host_share(self.table.data.ptr, self.table.nbytes) not in (1.0, None):
            self.memory[:: max(1, 4096 // self.memory.itemsize // WIDTH)] += 0  # the runtime cannot: by touching

    def measured(self, watch: Stopwatch) -> Measured:
        return watch.measured(self.found[:: max(1, len(self.found) // 512), 0].copy().get())

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


class Plain:
    """The same table in plain device memory, copied there by hand: what a look-up can cost at best."""

    def __init__(self, table: Table) -> None:
        self.table, self.plain = table, table.xp.empty(table.table.shape, np.float32)
        table.send_home()
        self.plain.set(table.memory)

    def __call__(self) -> Measured:
        table = self.table
        table.driver.synchronize()
        with Stopwatch(table.driver.synchronize) as watch:
            table.xp.take(self.plain, table.asked, axis=0, out=table.found)
        return table.measured(watch)


def measure(report: Report, driver: Driver, nbytes: int, rows: int) -> None:
    with ExitStack() as stack:
        table = Table(driver, nbytes, rows, stack)
        stack.callback(table.close)
        variants: dict[str, Any] = {
            "on demand": table.on_demand,
            "prefetched": table.prefetched,
            "umarray, role table": table.with_role,
            "umarray, resident": table.resident,
            "plain device memory": Plain(table),
        }
        report.compare(f"{rows:,} rows of {size_of(nbytes)}", variants)


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

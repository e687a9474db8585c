"""A working set of 0.5 to 2 times the device's memory: faults, evictions, bytes and modelled time, by how it is used.

On the emulated device only, where nobody else's memory can be pushed out::

    python -m umarray emulate --memory 64MiB -- python -m benchmarks.oversubscribe

A table is read from end to end, several times over, in chunks of a sixteenth of the memory. `plain`: nothing is said.
`advised`: read-mostly, so what is pushed out is dropped and not written back. `umarray, all pass`: the next chunk is
prefetched while one is computed on, and goes back to the host afterwards if the whole does not fit. `umarray, a part
stays`: the same, but as many chunks as fit stay on the device for good.

At 1 the table is just too large: its sums take a page as well, and reading in a circle while the oldest page makes room
finds none that is still there.

The numbers are counts of the emulated device. Times are modelled: what these migrations would cost on the card of the
profile one after another, with neither overlap nor the computation in it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import numpy as np

import umarray as um
from benchmarks.common import Disagreement, Report, parser
from umarray import hipemu
from umarray.drivers import get_driver
from umarray.drivers.base import Driver, Mode
from umarray.places import HOST, Device
from umarray.sizes import format_size

FACTORS = (0.5, 0.75, 1.0, 1.25, 1.5, 2.0)
CHUNKS = 16  # as many as the memory has room for
KEPT = 12  # chunks that stay; the rest of the room is for those that pass, and for scratch
LARGEST = 1 << 30  # bytes of device memory: twice as much is really taken from this machine


class Case:
    """One working set on the host, and the ways to go over it."""

    def __init__(self, driver: Driver, memory: int, factor: float, passes: int) -> None:
        self.driver, self.passes = driver, passes
        count = round(factor * CHUNKS)
        size = memory // CHUNKS
        self.fits = count < CHUNKS  # with room for a little scratch
        self.pool = um.pool(count * size, headroom=0, oversubscribe=3.0)
        with self.pool.plain():
            self.sums = driver.xp.zeros(count * passes, np.float64)
        self.table = um.empty((count, size // 4), np.float32, page_aligned=True, pool=self.pool)
        with um.host_view(self.table, "w") as h:
            h[...] = np.arange(count, dtype=np.float32)[:, None]
        um.move(self.table, to=HOST)
        self.expected = np.tile(np.arange(count) * float(size // 4), passes)
        driver.synchronize()

    def read(self, turn: int, k: int) -> None:
        self.driver.xp.sum(self.table[k], dtype=np.float64, out=self.sums[turn * len(self.table) + k])

    def plain(self) -> hipemu.Counters:
        with hipemu.counters() as c:
            for turn in range(self.passes):
                for k in range(len(self.table)):
                    self.read(turn, k)
        return c

    def advised(self) -> hipemu.Counters:
        with um.advise(self.table, read_mostly=True):
            return self.plain()  # which waits: advice is not ordered with the work of streams

    def all_pass(self) -> hipemu.Counters:
        return self._scoped(len(self.table) if self.fits else 0)

    def a_part_stays(self) -> hipemu.Counters:
        return self._scoped(len(self.table) if self.fits else KEPT)

    def _scoped(self, kept: int) -> hipemu.Counters:
        order = [(turn, k) for turn in range(self.passes) for k in range(len(self.table))]
        with hipemu.counters() as c:
            for (turn, k), following in zip(order, [*order[1:], None], strict=True):
                with ExitStack() as scopes:
                    scopes.enter_context(um.prefetch(self.table[k], to=Device(0), back=None if k < kept else HOST))
                    if following is not None:
                        scopes.enter_context(um.prefetch(self.table[following[1]], to=Device(0), wait=False))
                    self.read(turn, k)
            if kept < len(self.table):
                um.move(self.table[-1], to=HOST)  # it goes back anyway; this comes behind every way back
        return c

    def close(self) -> None:
        del self.table, self.sums
        self.pool.close()


VARIANTS: dict[str, Callable[[Case], hipemu.Counters]] = {
    "plain": Case.plain,
    "advised": Case.advised,
    "umarray, all pass": Case.all_pass,
    "umarray, a part stays": Case.a_part_stays,
}


def measure(driver: Driver, memory: int, factor: float, variant: str, passes: int) -> dict[str, Any]:
    """Counts of one variant, from a table that lies on the host."""
    case = Case(driver, memory, factor, passes)
    try:
        c = VARIANTS[variant](case)
        if not np.array_equal(um.asnumpy(case.sums), case.expected):
            raise Disagreement(f"{variant} at {factor} gave wrong sums")
    finally:
        case.close()
    return {
        "device_faults": c.device_faults,
        "evictions": (c.evicted_bytes + c.dropped_bytes) // hipemu.page_bytes(),
        "to_device_mib": c.bytes_to_device / 2**20,
        "of_it_prefetched_mib": c.by_device[0].prefetched_bytes / 2**20,
        "to_host_mib": c.bytes_to_host / 2**20,
        "modelled_ms": c.modelled_seconds * 1e3,
    }


def refuse_all_but_the_emulated_device() -> None:
    """Elsewhere this would push other people's memory out of a card."""
    if not hipemu.active():
        raise SystemExit(
            "oversubscribe runs on the emulated device only: "
            "python -m umarray emulate --memory 64MiB -- python -m benchmarks.oversubscribe"
        )


def main() -> None:
    refuse_all_but_the_emulated_device()
    arguments = parser(__doc__).parse_args()
    report, driver = Report("oversubscribe", arguments), get_driver()
    if driver.mode is not Mode.MANAGED or driver.traits(0).unified:
        raise SystemExit("oversubscribe needs a machine whose pages migrate: --xnack on, and not --profile mi300a")
    memory = driver.memory_info(Device(0)).total
    if memory > LARGEST:
        raise SystemExit(f"oversubscribe: the device has {format_size(memory)}; give emulate --memory 1GiB or less")
    if memory % (CHUNKS * hipemu.page_bytes()):
        raise SystemExit(f"oversubscribe: --memory must be a multiple of {CHUNKS} pages")
    for factor in FACTORS[::2] if report.quick else FACTORS:
        for variant in VARIANTS:
            case = f"{factor:g} x {format_size(memory)}, pages of {format_size(hipemu.page_bytes())}"
            report.add(case, variant, **measure(driver, memory, factor, variant, passes=2 if report.quick else 4))
    report.finish()


if __name__ == "__main__":
    main()

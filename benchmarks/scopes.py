"""Scopes: what entering and leaving one costs an array, for 1 to 10,000 arrays, side by side, apart, tiny, nested.

Microseconds an array: in all, in the driver's calls, and umarray's own. Calls of the driver should grow with merged
spans, not with arrays: neighbours are one, and so are thousands of arrays that share a page. Beside it what one writes
by hand: one prefetch call an array. Everything lies where it is asked to be already, so that no page moves.

Times are the host's own, on the emulated device too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

import umarray as um
from benchmarks.common import Measured, Report, guarded, parser
from umarray.drivers import get_driver
from umarray.drivers.base import Driver, Mode
from umarray.places import Device

COUNTS = (1, 10, 100, 1_000, 10_000)
TINY = 64  # bytes
LARGEST = 192 << 20  # bytes of managed memory in a case
CALLS = ("prefetch", "advise", "read_range")


class Meter:
    """How often the driver's hints are called, and how long they take."""

    def __init__(self) -> None:
        self.calls, self.seconds = 0, 0.0

    @contextmanager
    def on(self, driver: Any) -> Iterator[None]:
        for name in CALLS:
            setattr(driver, name, self._timed(getattr(driver, name)))
        try:
            yield
        finally:
            for name in CALLS:
                delattr(driver, name)  # the methods of its class again

    def _timed(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any) -> Any:
            start = perf_counter()
            try:
                return call(*arguments)
            finally:
                self.seconds += perf_counter() - start
                self.calls += 1

        return timed


def timed(driver: Driver, scopes: Callable[[], ExitStack], count: int) -> Measured:
    """Enter and leave, several times over where there are few arrays; the driver's calls apart."""
    meter, times = Meter(), max(1, 100 // count)
    with meter.on(driver):
        start = perf_counter()
        for _ in range(times):
            scopes().close()
        seconds = (perf_counter() - start) / times
    driver.synchronize()
    in_driver = meter.seconds / times
    return Measured(seconds, meter.calls // times, {"driver": in_driver, "own": seconds - in_driver})


def entered(*scopes: Any) -> ExitStack:
    with ExitStack() as stack:
        for scope in scopes:
            stack.enter_context(scope)
        return stack.pop_all()


def layouts(pool: Any, page: int, count: int) -> dict[str, list[Any]]:
    """Arrays of a page side by side, of a page each a page apart, and tiny ones that share pages."""
    found = {}
    if 2 * count * page <= LARGEST:
        slab = um.empty((2 * count, page), np.uint8, page_aligned=True, pool=pool)
        found["side by side"] = [slab[k] for k in range(count)]
        found["a page apart"] = [slab[2 * k] for k in range(count)]
    tiny = um.empty((count, TINY), np.uint8, page_aligned=True, pool=pool)
    found["tiny"] = [tiny[k] for k in range(count)]
    return found


def nest(arrays: list[Any], width: int = 10) -> Any:
    """The arrays as a tree of dicts with so many branches."""
    while len(arrays) > width:
        arrays = [arrays[k : k + width] for k in range(0, len(arrays), width)]
    return {str(k): nest(one, width) if isinstance(one, list) else one for k, one in enumerate(arrays)}


def measure(report: Report, driver: Driver, case: str, count: int, variants: dict[str, Callable[[], Any]]) -> None:
    """Rows of one case, in microseconds an array, with the driver's calls."""
    calls = {name: run().result for name, run in variants.items()}
    report.compare(case, variants, unit="us", per=count, tolerance=None)
    for row in report.rows[-len(variants) :]:
        row["calls"] = calls[row["variant"]]


def compare(report: Report, driver: Driver, name: str, arrays: list[Any]) -> None:
    count, here = len(arrays), Device(0)
    entered(um.prefetch(arrays, to=here)).close()
    driver.synchronize()
    variants = {
        "prefetch": lambda: timed(driver, lambda: entered(um.prefetch(arrays, to=here)), count),
        "advise": lambda: timed(driver, lambda: entered(um.advise(arrays, read_mostly=True)), count),
    }
    if driver.mode is Mode.MANAGED:
        variants["by hand"] = lambda: timed(driver, lambda: by_hand(driver, arrays), count)
    measure(report, driver, f"{count:,} {name}", count, variants)


def by_hand(driver: Driver, arrays: list[Any]) -> ExitStack:
    """One call an array, as one writes it without umarray."""
    stream = driver.current_stream()
    for x in arrays:
        driver.prefetch(x.data.ptr, x.nbytes, Device(0), stream)
    return ExitStack()


def nested(report: Report, driver: Driver, arrays: list[Any]) -> None:
    """Scopes in scopes on the same array, and a nest of dicts in one scope."""
    one, here = arrays[0], Device(0)
    for depth in COUNTS[:2] if report.quick else COUNTS[:3]:

        def deep(depth: int = depth) -> ExitStack:
            return entered(*(um.advise(one, read_mostly=bool(level % 2)) for level in range(depth)))

        def mixed(depth: int = depth) -> ExitStack:
            return entered(*(um.prefetch(one, to=here) for _ in range(depth)))

        measure(
            report,
            driver,
            f"{depth} scopes, one in another",
            depth,
            {"prefetch": partial(timed, driver, mixed, depth), "advise": partial(timed, driver, deep, depth)},
        )
    tree = nest(arrays)
    count = len(arrays)
    measure(
        report,
        driver,
        f"{count:,} in a tree of dicts",
        count,
        {
            "prefetch": lambda: timed(driver, lambda: entered(um.prefetch(tree, to=here)), count),
            "advise": lambda: timed(driver, lambda: entered(um.advise(tree, read_mostly=True)), count),
        },
    )


def main() -> None:
    arguments = parser(__doc__).parse_args()
    report, driver = Report("scopes", arguments), get_driver()
    if driver.mode is not Mode.MANAGED:
        report.skip("calls of the driver", f"in {driver.mode.value} mode hints act on nothing; looking up is timed")
    with guarded(driver):
        for count in COUNTS[:3] if report.quick else COUNTS:
            with um.pool("256MiB") as pool:
                for name, arrays in layouts(pool, driver.page_size, count).items():
                    compare(report, driver, name, arrays)
                    if name == "tiny" and count == (100 if report.quick else 1_000):
                        nested(report, driver, arrays)
                    del arrays
    report.finish()


if __name__ == "__main__":
    main()

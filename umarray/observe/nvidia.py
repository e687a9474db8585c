"""NVIDIA's CUPTI as a source: transfers and faults with address, direction and cause."""

from __future__ import annotations

from umarray import events
from umarray.drivers import cupti
from umarray.drivers.base import Driver
from umarray.errors import NotSupported
from umarray.log import warn_once
from umarray.observe.counters import About, Counts, Taken
from umarray.places import HOST, Device, Host

MOST = 200_000

_SEES = (
    *("device_faults", "host_faults", "bytes_to_device", "bytes_to_host", "bytes_between_devices"),
    *("prefetched_bytes", "evicted_bytes", "addresses"),
)
ABOUT = About(
    "CUPTI",
    "as the driver reports",
    _SEES,
    (
        "memory that was allocated before the counters came on: set UMARRAY_COUNTERS=1 before the first allocation, or "
        "watch something before it",
        "touches of pages that are there already: whether a prefetched page was used",
        "first touches of fresh pages, which move nothing",
    ),
)


class Nvidia:
    """The source.

    Raises
    ------
    NotSupported
        CUPTI cannot be used here.
    """

    about = ABOUT
    name = ABOUT.name

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._collector = cupti.collector(driver.device_count())
        if not self._collector.settle(driver):  # they need a while to come on
            raise NotSupported(f"CUPTI did not tell of a page within {cupti.PATIENCE:.0f} s of its being moved")

    def begin(self) -> NvidiaSession:
        return NvidiaSession(self._driver, self._collector)


class NvidiaSession:
    """One interval. Records come late, so the first look after the end waits for a canary (some milliseconds)."""

    def __init__(self, driver: Driver, collector: cupti.Collector) -> None:
        self._driver, self._collector = driver, collector
        self._window = collector.open(MOST)
        self._settled = False
        self._totals = dict.fromkeys(_SEES[:-1], 0)

    def end(self) -> None:
        self._window.ended = min(self._window.ended, self._collector.now())

    def take(self) -> Taken:
        self._catch_up()
        told, lost = self._window.take()
        return Taken(tuple(self._record(one) for one in told), lost)

    def counts(self) -> Counts:
        return Counts(**self._totals)

    def _catch_up(self) -> None:
        if self._window.ended == cupti.OPEN:
            self._collector.flush()
        elif not self._settled:
            self._settled = True
            if not self._collector.settle(self._driver):
                warn_once("CUPTI did not tell of a page in %.0f s: what was watched is incomplete", cupti.PATIENCE)

    def _record(self, one: cupti.Told) -> events.Record:
        start, end = (at * 1e-9 + self._collector.to_seconds for at in (one.start, max(one.start, one.end)))
        if one.kind == "transfer":
            self._add(_direction(one), one.value)
            if one.cause in ("prefetch", "eviction"):
                self._add("prefetched_bytes" if one.cause == "prefetch" else "evicted_bytes", one.value)
            cause = "fault" if one.cause == "coherence" else one.cause
            return events.Migrated(one.address, one.value, one.source, one.to, cause, start, end)
        host = one.kind == "host fault"
        self._add("host_faults" if host else "device_faults", one.value)
        place = HOST if host else one.source
        return events.Faulted(one.address, 0, place, one.value, one.write, start)

    def _add(self, name: str, amount: int) -> None:
        self._totals[name] += amount


def _direction(one: cupti.Told) -> str:
    if isinstance(one.to, Host):
        return "bytes_to_host"
    return "bytes_between_devices" if isinstance(one.source, Device) else "bytes_to_device"

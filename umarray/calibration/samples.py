"""One sample of each figure: the state of the pages that it wants, and what is timed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any, TypeAlias

import numpy as np

from umarray.drivers.base import Driver, Mode, Outcome, host_bytes
from umarray.places import HOST, Device, Place

_Bytes: TypeAlias = "np.ndarray[Any, np.dtype[np.uint8]]"
Seconds: TypeAlias = float | None


@dataclass
class Bench:
    """Buffers on one device, and what can be timed on them. Each timing leaves pages where it put them."""

    driver: Driver
    device: int
    stream: int
    managed: int  # addresses; 0 where the mode has none
    plain: int
    sink: int
    pinned: int
    ordinary: _Bytes

    def timed(self, work: Callable[[], Any]) -> Seconds:
        """Seconds until `work`'s effect is there; None where the driver refused it."""
        self.idle()
        start = perf_counter()
        outcome = work()
        self.idle()
        seconds = perf_counter() - start
        return None if outcome is Outcome.UNSUPPORTED else seconds

    def idle(self) -> None:
        self.driver.synchronize(self.stream, self.device)

    def on_host(self, nbytes: int) -> None:
        """Let the managed buffer be on the host, written there."""
        self.driver.prefetch(self.managed, nbytes, HOST, self.stream)  # quicker than the faults of the write
        self.idle()
        self.host(self.managed, nbytes)[...] = 1

    def on_device(self, nbytes: int) -> None:
        """Let the managed buffer be on the device."""
        self.driver.prefetch(self.managed, nbytes, Device(self.device), self.stream)
        self.idle()

    def host(self, address: int, nbytes: int) -> _Bytes:
        return host_bytes(address, nbytes, None)

    def prefetch(self, nbytes: int, place: Place) -> Outcome:
        return self.driver.prefetch(self.managed, nbytes, place, self.stream)

    def copy(self, target: int, source: int, nbytes: int) -> None:
        self.driver.copy(target, source, nbytes, self.stream)

    def read(self, source: int, nbytes: int) -> None:
        """A kernel reads `source`."""
        self.driver.traverse(source, self.sink, nbytes, self.stream, self.device)


def _prefetch(b: Bench, n: int) -> Seconds:
    b.on_host(n)
    return b.timed(lambda: b.prefetch(n, Device(b.device)))


def _prefetch_back(b: Bench, n: int) -> Seconds:
    b.on_device(n)
    return b.timed(lambda: b.prefetch(n, HOST))


def _prefetch_there(b: Bench, n: int) -> Seconds:
    b.on_device(n)
    return b.timed(lambda: b.prefetch(n, Device(b.device)))


def _prefetch_call(b: Bench, n: int) -> Seconds:
    b.on_host(n)
    start = perf_counter()
    outcome = b.prefetch(n, Device(b.device))
    seconds = perf_counter() - start
    b.idle()
    return None if outcome is Outcome.UNSUPPORTED else seconds


def _renew(b: Bench, n: int) -> Seconds:
    b.on_host(n)
    return b.timed(lambda: b.driver.renew(b.managed, n, Device(b.device), b.stream))


def _renew_back(b: Bench, n: int) -> Seconds:
    b.on_device(n)
    return b.timed(lambda: b.driver.renew(b.managed, n, HOST, b.stream))


def _copy_in(b: Bench, n: int) -> Seconds:
    return b.timed(lambda: b.copy(b.plain, b.pinned, n))


def _copy_out(b: Bench, n: int) -> Seconds:
    return b.timed(lambda: b.copy(b.pinned, b.plain, n))


def _copy_managed(b: Bench, n: int) -> Seconds:
    b.on_device(n)
    return b.timed(lambda: b.copy(b.managed, b.pinned, n))


def _pageable_in(b: Bench, n: int) -> Seconds:
    return b.timed(lambda: b.copy(b.plain, b.ordinary.ctypes.data, n))


def _pageable_out(b: Bench, n: int) -> Seconds:
    return b.timed(lambda: b.copy(b.ordinary.ctypes.data, b.plain, n))


def _demand(b: Bench, n: int) -> Seconds:
    """Less what the same kernel takes where its pages are there."""
    b.on_host(n)
    faulting = b.timed(lambda: b.read(b.managed, n))
    return _less(faulting, b.timed(lambda: b.read(b.managed, n)))


def _demand_back(b: Bench, n: int) -> Seconds:
    b.on_device(n)
    pages = b.host(b.managed, n)[:: b.driver.page_size]
    return b.timed(pages.max)


def _bus(b: Bench, n: int) -> Seconds:
    """Less what the same kernel takes in the device's own memory."""
    return _less(b.timed(lambda: b.read(b.pinned, n)), b.timed(lambda: b.read(b.plain, n)))


def _less(seconds: Seconds, base: Seconds) -> Seconds:
    return None if seconds is None or base is None else max(0.0, seconds - base)


def _host_write(b: Bench, n: int) -> Seconds:
    return b.timed(lambda: b.host(b.pinned, n).fill(2))


def _slot_staged(b: Bench, n: int) -> Seconds:
    def turn() -> None:
        b.host(b.pinned, n).fill(3)
        b.copy(b.plain, b.pinned, n)
        b.read(b.plain, n)

    return b.timed(turn)


def _slot_bus(b: Bench, n: int) -> Seconds:
    def turn() -> None:
        b.host(b.pinned, n).fill(3)
        b.read(b.pinned, n)

    return b.timed(turn)


def _slot_direct(b: Bench, n: int) -> Seconds:
    def turn() -> None:
        b.on_host(n)
        b.read(b.managed, n)

    return b.timed(turn)


def _slot_managed(b: Bench, n: int) -> Seconds:
    """Home without its contents where the runtime can."""
    renews = b.driver.traits(b.device).renew
    b.on_host(n)

    def turn() -> Outcome:
        b.on_host(n)
        b.prefetch(n, Device(b.device))
        b.read(b.managed, n)
        return b.driver.renew(b.managed, n, HOST, b.stream) if renews else b.prefetch(n, HOST)

    return b.timed(turn)


Sample = Callable[[Bench, int], Seconds]
_ANYWHERE: dict[str, Sample] = {
    "copy_in": _copy_in,
    "copy_out": _copy_out,
    "pageable_in": _pageable_in,
    "pageable_out": _pageable_out,
    "bus": _bus,
    "host_write": _host_write,
}
_MIGRATING: dict[str, Sample] = {
    "prefetch": _prefetch,
    "prefetch_back": _prefetch_back,
    "prefetch_there": _prefetch_there,
    "prefetch_call": _prefetch_call,
    "copy_managed": _copy_managed,
    "demand": _demand,
    "demand_back": _demand_back,
}
_RENEWING: dict[str, Sample] = {"renew": _renew, "renew_back": _renew_back}


def samples(driver: Driver, device: int) -> tuple[dict[str, Sample], dict[str, Sample]]:
    """The figures that a device can have, and the transports whose slots can be timed there."""
    traits = driver.traits(device)
    if driver.mode is not Mode.MANAGED:
        return dict(_ANYWHERE), {"staged": _slot_staged, "bus": _slot_bus}
    if traits.unified:
        return dict(_ANYWHERE), {"direct": _slot_direct, "staged": _slot_staged}
    renewing = _RENEWING if traits.renew else {}
    return _ANYWHERE | _MIGRATING | renewing, {"staged": _slot_staged, "bus": _slot_bus, "managed": _slot_managed}

"""The one guard before managed memory on a real card: a shared card must never be oversubscribed by a test.

Every GPU test (by tests/gpu/conftest.py) and every benchmark (by calling `install` first) goes through it. Managed
memory that umarray's driver allocates is counted by itself; what is allocated past it takes ``with managed(nbytes):``.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from umarray.drivers.base import Allocation, Driver, Kind
from umarray.places import Device
from umarray.sizes import format_size

LIMIT = 2 << 30  # bytes of managed memory alive at once
SHARE = 0.5  # of what is free on the device

_lock = threading.Lock()
_alive = 0


class TooMuch(RuntimeError):
    """More managed memory than a shared card may be asked for."""


def alive() -> int:
    """Bytes of managed memory that count now."""
    return _alive


def reserve(nbytes: int, driver: Driver, device: int = 0) -> None:
    """Count `nbytes` of managed memory as alive, before they are allocated.

    Raises
    ------
    TooMuch
        Over 2 GiB would be alive, or over half of what is free on the device. Nothing has changed.
    """
    global _alive
    free = driver.memory_info(Device(device)).free
    with _lock:
        after = _alive + nbytes
        if after > LIMIT:
            raise TooMuch(f"{format_size(after)} of managed memory would be alive; the limit is {format_size(LIMIT)}")
        if nbytes > free * SHARE:
            raise TooMuch(f"{format_size(nbytes)} is over half of the {format_size(free)} that are free on the device")
        _alive = after


def release(nbytes: int) -> None:
    """Count `nbytes` as gone."""
    global _alive
    with _lock:
        _alive -= nbytes


@contextmanager
def managed(nbytes: int, driver: Driver, device: int = 0) -> Iterator[None]:
    """For managed memory that is not allocated by umarray's driver: at most `nbytes` of it lives in this block."""
    reserve(nbytes, driver, device)
    try:
        yield
    finally:
        release(nbytes)


def install(driver: Any) -> Callable[[], None]:
    """Let every managed allocation of `driver` pass the guard; returns a function that takes it off again."""
    allocate, free = driver.allocate, driver.free

    def guarded_allocate(nbytes: int, kind: Kind, device: int | None = None) -> Allocation:
        if kind is not Kind.MANAGED:
            found: Allocation = allocate(nbytes, kind, device)
            return found
        reserve(nbytes, driver, driver.current_device() if device is None else device)
        try:
            found = allocate(nbytes, kind, device)
        except BaseException:
            release(nbytes)
            raise
        return found

    def guarded_free(allocation: Allocation) -> None:
        free(allocation)
        if allocation.kind is Kind.MANAGED:
            release(allocation.nbytes)

    driver.allocate, driver.free = guarded_allocate, guarded_free

    def remove() -> None:
        del driver.allocate, driver.free  # the methods of its class again

    return remove

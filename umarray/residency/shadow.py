"""Pinned host memory that stands in for an array in plain device memory while the host works on it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from math import prod
from typing import Any, TypeAlias

import numpy as np

from umarray import events
from umarray.drivers.base import Allocation, Array, Driver, Event, Kind, host_bytes
from umarray.places import HOST, Device, Place
from umarray.residency.spans import Layout, layout_of
from umarray.residency.streams import Lane

HostArray: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"


def laid_over(layout: Layout, address: int, owner: object, *, readonly: bool = False) -> HostArray:
    """The NumPy array of a layout whose lowest byte lies at `address` of host memory; it keeps `owner` alive."""
    assert layout.dtype is not None
    start, stop = layout.range
    memory = host_bytes(address, stop - start, owner, readonly=readonly)
    return np.ndarray(layout.shape, layout.dtype, memory, layout.address - start, layout.strides)


def sealed(array: HostArray) -> HostArray:
    """A view of `array` that cannot be written, nor be made writable again."""
    if array.size and not array.dtype.hasobject:  # NumPy lays no objects over memory
        layout = layout_of(array)
        return laid_over(layout, layout.range[0], array, readonly=True)
    view = array.view()
    view.flags.writeable = False
    return view


class Shadow:
    """Pinned memory for a range of device memory; it goes when the last NumPy array over it does.

    The range is copied as it lies, whatever arrays are laid over it: `array` gives one.

    Notes
    -----
    Copies are queued on the lane given and not waited for.
    """

    def __init__(self, driver: Driver, start: int, stop: int, lane: Lane, pinned: PinnedMemory, scope: int = 0) -> None:
        self._driver, self._start, self.lane, self._scope = driver, start, lane, scope
        self._memory = pinned.take(stop - start)

    def array(self, layout: Layout) -> HostArray:
        """The NumPy array of a layout that lies in the range."""
        return laid_over(layout, self._memory.address + layout.range[0] - self._start, self._memory)

    def fetch(self) -> None:
        """Queue the copy from the device."""
        self._copy(self._memory.address, self._start, fetch=True)

    def write_back(self) -> None:
        """Queue the copy to the device."""
        self._copy(self._start, self._memory.address, fetch=False)

    def leave(self) -> None:
        """Nobody waits for what is queued: keep the memory from being used again before it is done."""
        self._memory.after = self._driver.record(self.lane.stream, self.lane.device)

    def _copy(self, target: int, source: int, *, fetch: bool) -> None:
        nbytes = self._memory.nbytes
        self._driver.copy(target, source, nbytes, self.lane.stream)
        if events.listeners:
            device: Place = Device(self.lane.device)
            start, end, there = (device, HOST, source) if fetch else (HOST, device, target)
            events.emit(events.Copied(nbytes, start, end, there, self._scope))


class Gathered(Shadow):
    """The shadow of one array with gaps: gathered on the device first, and scattered on the way back, so that nothing
    between its elements is ever written. Both keep the host until they are done."""

    def __init__(
        self, driver: Driver, x: Array, layout: Layout, lane: Lane, pinned: PinnedMemory, scope: int = 0
    ) -> None:
        super().__init__(driver, 0, layout.nbytes, lane, pinned, scope)
        self._x, self._layout = x, layout

    def array(self, layout: Layout) -> HostArray:
        return laid_over(_compact(layout), self._memory.address, self._memory)

    def fetch(self) -> None:
        with self._gathered() as (packed, address):
            packed[...] = self._elements()
            self._copy(self._memory.address, address, fetch=True)

    def write_back(self) -> None:
        with self._gathered() as (packed, address):
            self._copy(address, self._memory.address, fetch=False)
            self._elements()[...] = packed

    def _elements(self) -> Array:
        """The array as one of the driver's library; torch's and others by their exported interface."""
        return self._x if isinstance(self._x, self._driver.xp.ndarray) else self._driver.xp.asarray(self._x)

    @contextmanager
    def _gathered(self) -> Iterator[tuple[Array, int]]:
        """A gapless array on the device for the while, our lane being the current one; outside of every pool."""
        driver, lane, dtype = self._driver, self.lane, self._layout.dtype
        block = driver.allocate(self._memory.nbytes, Kind.DEVICE, lane.device)
        try:
            with driver.use_stream(lane.stream, lane.device):
                raw = driver.as_array(block.address, block.nbytes, None, lane.device)
                yield raw.view(dtype).reshape(self._layout.shape), block.address
            driver.synchronize(lane.stream, lane.device)
        finally:
            driver.free(block)


class PinnedMemory:
    """Pinned blocks for shadows. Those no longer used are kept for the next ones, up to `KEPT` bytes of them.

    Notes
    -----
    The end of a block may be told by a finaliser, inside anything: it appends to a deque and calls no driver.
    """

    KEPT = 256 << 20

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._spent: deque[tuple[Allocation, Event | None]] = deque()

    def take(self, nbytes: int) -> _Block:
        """A block of at least `nbytes`, given back when nothing refers to it."""
        spent: list[tuple[Allocation, Event | None]] = []
        with suppress(IndexError):  # empty, or another thread was faster
            while True:
                spent.append(self._spent.popleft())
        found: Allocation | None = None
        kept = 0
        for one, after in reversed(spent):  # the newest first
            idle = after is None or after.done()
            if idle and found is None and nbytes <= one.nbytes <= 2 * nbytes:
                found = one
                continue
            kept += one.nbytes
            if kept <= self.KEPT or not idle:
                self._spent.appendleft((one, None if idle else after))
            else:
                self._driver.free(one)
        return _Block(found or self._driver.allocate(nbytes, Kind.PINNED), nbytes, self._spent)


class _Block:
    """A pinned block in use. Its finaliser only appends; at the end of the process everything goes back anyway."""

    __slots__ = ("_allocation", "_spent", "address", "after", "nbytes")

    def __init__(self, allocation: Allocation, nbytes: int, spent: deque[tuple[Allocation, Event | None]]) -> None:
        self.address, self.nbytes = allocation.address, nbytes
        self._allocation, self._spent = allocation, spent
        self.after: Event | None = None
        """What must be done before the block may be used again."""

    def __del__(self) -> None:
        self._spent.append((self._allocation, self.after))


def _compact(layout: Layout) -> Layout:
    shape, itemsize = layout.shape, layout.itemsize
    strides = tuple(prod(shape[axis + 1 :]) * itemsize for axis in range(len(shape)))
    return Layout(0, shape, strides, itemsize, layout.dtype, None)

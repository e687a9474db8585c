"""Pinned host memory that stands in for an array in plain device memory while the host works on it."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from math import prod
from typing import Any, TypeAlias

import numpy as np

from umarray import events
from umarray.drivers.base import Allocation, Array, Driver, Kind, host_bytes
from umarray.places import HOST, Device
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
    """A pinned copy of one array; its memory goes when the last NumPy view of it does.

    An array without gaps is copied as it lies, whatever the order of its axes. One with gaps is gathered on the device
    first and scattered on the way back, so that nothing between its elements is ever written.

    Notes
    -----
    Copies are queued on the lane given and not waited for.
    """

    def __init__(self, driver: Driver, x: Array, layout: Layout, lane: Lane, pinned: PinnedMemory) -> None:
        self._driver, self._x, self._layout, self.lane = driver, x, layout, lane
        start, stop = layout.range
        self._gapless = stop - start <= layout.nbytes  # less, where elements share memory: such a view is only read
        self._memory = pinned.take(min(stop - start, layout.nbytes))
        compact = layout if self._gapless else _compact(layout)
        self.array = laid_over(compact, self._memory.address, self._memory)

    def fetch(self) -> None:
        """Queue the copy from the device; for one with gaps, keep the host until it is done."""
        if self._gapless:
            self._copy(self._memory.address, self._layout.range[0], fetch=True)
        else:
            with self._gathered() as (packed, address):
                packed[...] = self._elements()
                self._copy(self._memory.address, address, fetch=True)

    def write_back(self) -> None:
        """Queue the copy to the device, of the elements and nothing else; with gaps, keep the host meanwhile."""
        if self._gapless:
            self._copy(self._layout.range[0], self._memory.address, fetch=False)
        else:
            with self._gathered() as (packed, address):
                self._copy(address, self._memory.address, fetch=False)
                self._elements()[...] = packed

    def _elements(self) -> Array:
        """The array as one of the driver's library; torch's and others by their exported interface."""
        return self._x if isinstance(self._x, self._driver.xp.ndarray) else self._driver.xp.asarray(self._x)

    def _copy(self, target: int, source: int, *, fetch: bool) -> None:
        nbytes = self._memory.nbytes
        self._driver.copy(target, source, nbytes, self.lane.stream)
        if events.listeners:
            device = Device(self.lane.device)
            events.emit(events.Copied(nbytes, device, HOST) if fetch else events.Copied(nbytes, HOST, device))

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
    """Pinned blocks for shadows. One that is no longer used is kept until the next is asked for, and used again then.

    Notes
    -----
    The end of a block may be told by a finaliser, inside anything: it appends to a deque and calls no driver.
    """

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._spent: deque[Allocation] = deque()

    def take(self, nbytes: int) -> _Block:
        """A block of at least `nbytes`, given back when nothing refers to it."""
        found: Allocation | None = None
        while self._spent:
            try:
                spent = self._spent.popleft()
            except IndexError:  # another thread was faster
                break
            if found is None and nbytes <= spent.nbytes <= 2 * nbytes:
                found = spent
            else:
                self._driver.free(spent)
        return _Block(found or self._driver.allocate(nbytes, Kind.PINNED), nbytes, self._spent)


class _Block:
    """A pinned block in use."""

    def __init__(self, allocation: Allocation, nbytes: int, spent: deque[Allocation]) -> None:
        self.address, self.nbytes = allocation.address, nbytes
        weakref.finalize(self, spent.append, allocation).atexit = False  # then the process gives back everything


def _compact(layout: Layout) -> Layout:
    shape, itemsize = layout.shape, layout.itemsize
    strides = tuple(prod(shape[axis + 1 :]) * itemsize for axis in range(len(shape)))
    return Layout(0, shape, strides, itemsize, layout.dtype, None)

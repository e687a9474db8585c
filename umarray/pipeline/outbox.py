"""Results as NumPy arrays, copied to the host while the next batch computes."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from umarray import events
from umarray.drivers.base import Allocation, Driver, Event, Kind, Mode, host_bytes
from umarray.pipeline.layout import ALIGNMENT
from umarray.pipeline.report import Clock
from umarray.pipeline.structure import Structure
from umarray.places import HOST, Device


@final
class Ticket:
    """A result on its way; holds the arrays that it is copied from."""

    __slots__ = ("_address", "_done", "_others", "_sources", "_structure")

    def __init__(self, structure: Structure, others: list[Any]) -> None:
        self._structure = structure
        self._others = others
        self._sources: list[Any] = []
        self._address: list[int] = []
        self._done: Event | None = None

    def queue(self, sources: list[Any], addresses: list[int], done: Event | None) -> None:
        """The copies of these arrays to these host addresses (0: the array is on the host already) end at an event."""
        self._sources, self._address, self._done = sources, addresses, done

    def fetch(self) -> Any:
        """The result in NumPy arrays of its own, once it has arrived."""
        if self._done is not None:
            self._done.wait()
        arrays = []
        for source, address in zip(self._sources, self._address, strict=True):
            if address == 0:
                arrays.append(source)
            else:
                memory = host_bytes(address, source.nbytes, None)
                arrays.append(memory.view(source.dtype).reshape(source.shape).copy())
        return self._structure.rebuild(arrays, self._others)


@final
class Outbox:
    """Two pinned buffers that take turns, and a stream.

    Notes
    -----
    A result is first copied on the current stream, within the device, with the caller's allocator: the next compute may
    write into the same array again, or into the slot that it is a view of. One thread uses an outbox. At most two
    results are under way: the one before last must be fetched before a third is sent.
    """

    def __init__(self, driver: Driver, device: int, clock: Clock) -> None:
        self._driver = driver
        self._device = device
        self._clock = clock
        self._buffers: list[Allocation | None] = [None, None]
        self._turn = 0
        self._stream = driver.create_stream(device)
        self.bytes_moved = 0

    def send(self, result: Any, index: int) -> Ticket:
        """Begin to copy a result that the current stream computes."""
        structure = Structure(result)
        others = [np.asarray(one) if isinstance(one, np.generic) else one for one in structure.others]
        ticket = Ticket(structure, others)
        xp, host = self._driver.xp, self._driver.mode is Mode.HOST
        sources = [
            xp.array(array, copy=True, order="C")  # the next compute may write what this one returned
            if not host and isinstance(array, xp.ndarray) and array.nbytes
            else np.array(array if isinstance(array, np.ndarray) else np.empty(array.shape, array.dtype))
            for array in structure.arrays
        ]
        away = [not host and isinstance(source, xp.ndarray) and source.nbytes > 0 for source in sources]
        offsets, end = [], 0
        for source, travels in zip(sources, away, strict=True):
            offsets.append(end)
            end += -(-source.nbytes // ALIGNMENT) * ALIGNMENT if travels else 0
        if end == 0:
            ticket.queue(sources, [0] * len(sources), None)
            return ticket
        base = self._buffer(end)
        addresses = [base + offset if travels else 0 for offset, travels in zip(offsets, away, strict=True)]
        ticket.queue(sources, addresses, self._copy(sources, addresses, index))
        return ticket

    def _copy(self, sources: list[Any], addresses: list[int], index: int) -> Event:
        driver, stream, moved = self._driver, self._stream, 0
        driver.wait(stream, driver.record(driver.current_stream(self._device), self._device))
        start = driver.record(stream, self._device, timed=True)
        for source, address in zip(sources, addresses, strict=True):
            if address:
                driver.copy(address, _address(source), source.nbytes, stream)
                moved += source.nbytes
        done = driver.record(stream, self._device, timed=True)
        self._clock.queued("out", index, start, done)
        self.bytes_moved += moved
        if events.listeners:
            events.emit(events.Copied(moved, Device(self._device), HOST))
        return done

    def _buffer(self, nbytes: int) -> int:
        self._turn ^= 1
        found = self._buffers[self._turn]
        if found is None or found.nbytes < nbytes:
            if found is not None:
                self._buffers[self._turn] = None
                self._driver.free(found)
            found = self._buffers[self._turn] = self._driver.allocate(nbytes, Kind.PINNED, self._device)
        return found.address

    def close(self) -> None:
        """Wait for the copies under way, and give stream and buffers back."""
        failure: BaseException | None = None
        steps: list[Any] = [
            lambda: self._driver.synchronize(self._stream, self._device),
            lambda: self._driver.destroy_stream(self._stream, self._device),
        ]
        steps += [lambda one=one: self._driver.free(one) for one in self._buffers if one is not None]
        self._buffers = [None, None]
        for step in steps:
            try:
                step()
            except BaseException as error:
                failure = failure or error
        if failure is not None:
            raise failure


def _address(array: Any) -> int:
    data = array.data  # CuPy's is a pointer, NumPy's a buffer
    return int(data.ptr if hasattr(data, "ptr") else array.ctypes.data)

"""FAKE: a recording driver over ordinary memory, with settable traits, for pools, scopes and pipelines without a GPU.

Its arrays are NumPy's, so plain array code runs at once; what goes through the driver (copy, fill, prefetch and
`launch`, a fake kernel) runs in the order of its stream, and lags where a test holds the stream (see fake_streams).
POISON: freed memory is overwritten, stays readable for a while, and work that touches it is a fault in `faults`.
"""

from __future__ import annotations

import mmap
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.fake_pages import Pages, number, place_of
from tests.fake_streams import FakeEvent, Gate, Queue, Streams
from umarray import events
from umarray.drivers.base import (
    Advice,
    Allocation,
    Array,
    Attribute,
    Event,
    Kind,
    MemoryInfo,
    Mode,
    Outcome,
    Traits,
    host_array,
    host_bytes,
)
from umarray.drivers.table import AllocationTable
from umarray.errors import DriverError, ForkedProcess, OutOfMemory
from umarray.places import HOST, Device, Place

POISON = 0xDB
STALE = 0xEE  # what a renewed page holds
PER_THREAD = 2  # the handle that every thread's own default stream has


@dataclass(frozen=True)
class Call:
    """One call of the driver; `stream` and `device` are None where the call has none."""

    name: str
    stream: int | None
    device: int | None
    args: dict[str, Any]
    thread: int = field(default_factory=threading.get_ident)


class FakeDriver:
    """A recording `Driver`. Everything that a test may turn is an argument, and an attribute to turn later.

    `capacity` counts device and managed bytes a device; `managed_capacity` (default: the same) is what managed memory
    may reach, so set it higher to oversubscribe. `missing` names calls whose symbol the runtime lacks: "prefetch",
    "advise", "read_range".
    """

    name = "fake"
    xp: Any = np

    def __init__(
        self,
        mode: Mode | str = Mode.MANAGED,
        *,
        devices: int = 1,
        page_size: int = mmap.PAGESIZE,
        capacity: int = 1 << 30,
        managed_capacity: int | None = None,
        pinned_capacity: int = 1 << 30,
        unified: bool = False,
        prefetch_blocks: bool = False,
        readable_ranges: bool = True,
        coarse_grain: bool = True,
        missing: Iterable[str] = (),
        poison: bool = True,
        quarantine: int = 256 << 20,
        recycle: bool = True,
        per_thread_default: bool = False,
        renews: bool = False,
        page_table: bool = True,
    ) -> None:
        self.mode = Mode(mode)
        self.reasons: tuple[str, ...] = ("a recording driver of the tests",)
        self.devices, self.page_size = devices, page_size
        self.capacity = capacity
        self.managed_capacity = capacity if managed_capacity is None else managed_capacity
        self.pinned_capacity = pinned_capacity
        self.unified, self.prefetch_blocks, self.readable_ranges = unified, prefetch_blocks, readable_ranges
        self.renews, self.page_table = renews, page_table
        self.coarse_grain, self.missing, self.poison = coarse_grain, set(missing), poison
        self.quarantine, self.recycle, self.per_thread_default = quarantine, recycle, per_thread_default
        self.capturing = False  # a graph capture refuses allocations
        self.on_call: Callable[[Call], None] | None = None  # runs at the start of each call, no lock held
        self.calls: list[Call] = []
        self.faults: list[str] = []
        self.page_faults = 0
        self.live: dict[int, Allocation] = {}  # by serial
        self.streams = Streams()
        self._failures: dict[str, deque[BaseException]] = {}
        self._table = AllocationTable()
        self._maps: dict[int, mmap.mmap] = {}
        self._pages: dict[int, Pages] = {}
        self._freed: deque[tuple[int, int, mmap.mmap]] = deque()
        self._handles: dict[int, Queue] = {}
        self._defaults: dict[tuple[int, int, int], Queue] = {}
        self._spare: list[int] = []
        self._next_handle = 0x1000
        self._thread = threading.local()
        self._lock = threading.RLock()
        self._pid = os.getpid()

    # What tests ask and turn

    def named(self, *names: str) -> list[Call]:
        """The calls of these names, in order."""
        return [call for call in self.calls if call.name in names]

    def count(self, name: str) -> int:
        return len(self.named(name))

    def fail(self, name: str, error: BaseException | int, times: int = 1) -> None:
        """Let the next calls of `name` raise an error (an int: a `DriverError` of that status), changing nothing."""
        if isinstance(error, int):
            error = DriverError(name, error, "injected by a test")
        self._failures.setdefault(name, deque()).extend([error] * times)

    def hold(self, stream: int | None = None, device: int | None = None) -> Gate:
        """Hold a stream (default: the current one) from here on; open the gate to let it go on."""
        gate = Gate(self.streams)
        self.streams.put(self._queue(stream, device), gate)
        return gate

    def launch(
        self,
        work: Callable[[], Any] = lambda: None,
        stream: int | None = None,
        device: int | None = None,
        touches: Iterable[tuple[int, int]] = (),
    ) -> None:
        """A fake kernel: `work` runs in the order of its stream. `touches`: (address, bytes) that it accesses, which
        moves managed pages to the device and counts those that were elsewhere in `page_faults`."""
        queue, ranges = self._queue(stream, device), list(touches)
        self._call("launch", queue.handle, queue.device)

        def run() -> None:
            for address, nbytes in ranges:
                self._touch(address, nbytes, queue.device)
            work()

        self.streams.put(queue, run)

    def host_touch(self, address: int, nbytes: int) -> None:
        """The host accesses a range: managed pages move home, those that were elsewhere count in `page_faults`."""
        self._touch(address, nbytes, -1)

    def where(self, address: int, nbytes: int = 1) -> set[Place | bool]:
        """The places at which the pages of a managed range really are; False for pages not touched yet."""
        allocation, pages = self._managed(address)
        span = pages.span(address - allocation.address, nbytes)
        return {place_of(int(value)) for value in pages.where[span]}

    def adopt(self, address: int, nbytes: int, kind: Kind, place: Place) -> Allocation:
        """Let `find` know memory that somebody else allocated."""
        return self._table.add(address, nbytes, kind, place)

    def open_streams(self) -> set[int]:
        """Handles made and not destroyed."""
        return set(self._handles)

    # Devices

    def versions(self) -> dict[str, str]:
        return {}

    def advice(self) -> tuple[str, ...]:
        return ()

    def device_count(self) -> int:
        self._call("device_count")
        return self.devices

    def traits(self, device: int) -> Traits:
        self._call("traits", device=device)
        self._device(device)
        managed = self.mode is Mode.MANAGED
        return Traits(
            device=Device(device),
            name="Fake",
            architecture="fake",
            total_bytes=self.capacity,
            managed=managed,
            unified=self.unified,
            prefetch="prefetch" not in self.missing and managed and not self.unified,
            prefetch_blocks=self.prefetch_blocks,
            readable_ranges=self.readable_ranges and "read_range" not in self.missing,
            coarse_grain=self.coarse_grain,
            reasons=self.reasons,
            renew=self.renews and managed and not self.unified,
        )

    def current_device(self) -> int:
        self._call("current_device")
        return self._current()[0]

    def memory_info(self, place: Place) -> MemoryInfo:
        self._call("memory_info", device=number(place))
        with self._lock:
            if isinstance(place, Device):
                self._device(place.id)
                return MemoryInfo(max(0, self.capacity - self._used(place)), self.capacity)
            return MemoryInfo(max(0, self.pinned_capacity - self._used(HOST)), self.pinned_capacity)

    # Memory

    def allocate(self, nbytes: int, kind: Kind, device: int | None = None) -> Allocation:
        device = self._current()[0] if device is None else self._device(device)
        self._call("allocate", device=device, nbytes=nbytes, kind=kind)
        if nbytes <= 0:
            raise DriverError("allocate", 1, f"{nbytes} bytes: a call that must not reach a runtime")
        if self.capturing:
            raise DriverError("allocate", 900, "operation not permitted when stream is capturing")
        place: Place = Device(device) if kind in (Kind.MANAGED, Kind.DEVICE) else HOST
        limit = {Kind.MANAGED: self.managed_capacity, Kind.DEVICE: self.capacity}.get(kind, self.pinned_capacity)
        with self._lock:
            used = self._used(place)
            if used + nbytes > limit:
                raise OutOfMemory(nbytes, used, limit, "the fake driver's capacity")
            pages = mmap.mmap(-1, nbytes + self.page_size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            start = np.frombuffer(pages, np.uint8).ctypes.data
            address = -(-start // self.page_size) * self.page_size
            allocation = self._table.add(address, nbytes, kind, place)
            self._maps[allocation.serial] = pages
            self.live[allocation.serial] = allocation
            if kind is Kind.MANAGED:
                self._pages[allocation.serial] = Pages(nbytes, self.page_size, self.devices)
        if events.listeners:
            events.emit(events.Allocated(address, nbytes, kind.value, place))
        return allocation

    def free(self, allocation: Allocation) -> None:
        if os.getpid() != self._pid:
            return  # a forked child's finalisers must not touch its parent's memory
        self._call("free", args_from=allocation, check=False)
        self._table.remove(allocation)
        with self._lock:
            pages = self._maps.pop(allocation.serial)
            del self.live[allocation.serial]
            self._pages.pop(allocation.serial, None)
            if self.poison:
                host_bytes(allocation.address, allocation.nbytes, None)[:] = POISON
            self._freed.append((allocation.address, allocation.nbytes, pages))
            while sum(nbytes for _, nbytes, _ in self._freed) > self.quarantine and len(self._freed) > 1:
                self._freed.popleft()[2].close()
        if events.listeners:
            events.emit(events.Freed(allocation.address, allocation.nbytes, allocation.kind.value, allocation.place))

    def find(self, address: int) -> Allocation | None:
        self._call("find", address=address)
        return self._table.find(address)

    def as_array(
        self,
        address: int,
        nbytes: int,
        owner: object,
        device: int | None = None,
        dtype: Any = np.uint8,
        shape: tuple[int, ...] | None = None,
    ) -> Array:
        self._call("as_array", device=device, address=address, nbytes=nbytes)
        return host_array(address, nbytes, owner, dtype, shape)

    # Hints

    def prefetch(self, address: int, nbytes: int, place: Place, stream: int) -> Outcome:
        queue = self._queue(stream)
        self._call("prefetch", stream, queue.device, address=address, nbytes=nbytes, place=place)
        found = self._hint("prefetch", address, nbytes, place)
        if found is None:
            return Outcome.UNSUPPORTED
        pages, span = found
        if not self.unified:
            pages.asked[span] = number(place)
        self.streams.put(queue, lambda: pages.where.__setitem__(span, number(place)))
        if self.prefetch_blocks:
            self.streams.record(queue).wait()
        return Outcome.ASKED

    def renew(self, address: int, nbytes: int, place: Place, stream: int) -> Outcome:
        queue = self._queue(stream)
        self._call("renew", stream, queue.device, address=address, nbytes=nbytes, place=place)
        found = self._hint("renew", address, nbytes, place)
        if found is None or not self.renews or self.unified:
            return Outcome.UNSUPPORTED
        pages, span = found

        def run() -> None:
            host_bytes(address, nbytes, None)[:] = STALE
            pages.where[span] = number(place)

        pages.asked[span] = number(place)
        self.streams.put(queue, run)
        return Outcome.ASKED

    def host_share(self, address: int, nbytes: int) -> float | None:
        self._call("host_share", address=address, nbytes=nbytes)
        if not self.page_table:
            return None
        allocation = self._table.find(address)
        if allocation is None or allocation.serial not in self._pages:
            return 1.0
        pages = self._pages[allocation.serial]
        return float(np.mean(pages.where[pages.span(address - allocation.address, nbytes)] == -1))

    def advise(self, address: int, nbytes: int, advice: Advice, place: Place, on: bool) -> Outcome:
        self._call("advise", address=address, nbytes=nbytes, advice=advice, place=place, on=on)
        found = self._hint("advise", address, nbytes, place)
        if found is None or (advice is Advice.COARSE_GRAIN and not self.coarse_grain):
            return Outcome.UNSUPPORTED
        found[0].advise(found[1], advice, number(place), on)
        return Outcome.ASKED

    def read_range(self, address: int, nbytes: int, attribute: Attribute) -> Any:
        self._call("read_range", address=address, nbytes=nbytes, attribute=attribute)
        found = self._hint("read_range", address, nbytes, HOST)
        return found[0].read(found[1], attribute) if found is not None and self.readable_ranges else None

    # Work

    def copy(self, target: int, source: int, nbytes: int, stream: int) -> None:
        queue = self._queue(stream)
        self._call("copy", stream, queue.device, target=target, source=source, nbytes=nbytes)

        def run() -> None:
            if self._alive("copy to", target, nbytes) and self._alive("copy from", source, nbytes):
                host_bytes(target, nbytes, None)[:] = host_bytes(source, nbytes, None)

        self.streams.put(queue, run)

    def fill(self, address: int, value: int, nbytes: int, stream: int) -> None:
        queue = self._queue(stream)
        self._call("fill", stream, queue.device, address=address, value=value, nbytes=nbytes)

        def run() -> None:
            if self._alive("fill of", address, nbytes):
                host_bytes(address, nbytes, None)[:] = value

        self.streams.put(queue, run)

    def traverse(self, source: int, target: int, nbytes: int, stream: int, device: int) -> None:
        queue = self._queue(stream, device)
        self._call("traverse", stream, device, source=source, target=target, nbytes=nbytes)

        def run() -> None:
            for address in (source, target):
                found = self._table.find(address)
                if found is not None and found.serial in self._pages:
                    self._touch(address, nbytes, device)
            np.add(host_bytes(source, nbytes, None).view("u4"), 1, out=host_bytes(target, nbytes, None).view("u4"))

        self.streams.put(queue, run)

    def create_stream(self, device: int) -> int:
        self._call("create_stream", device=self._device(device))
        with self._lock:
            if self.recycle and self._spare:
                handle = self._spare.pop()
            else:
                self._next_handle += 0x10
                handle = self._next_handle
            self._handles[handle] = self.streams.add(device, handle)
        return handle

    def destroy_stream(self, stream: int, device: int) -> None:
        self._call("destroy_stream", stream, device)
        with self._lock:
            if self._handles.pop(stream, None) is None:
                raise DriverError("destroy_stream", 400, f"invalid resource handle {stream}")
            self._spare.append(stream)  # its queue lives on until its work is done, as a runtime's does

    def current_stream(self, device: int | None = None) -> int:
        self._call("current_stream", device=device)
        current, streams = self._current()
        return streams.get(current if device is None else self._device(device), self._default())

    @contextmanager
    def use_stream(self, stream: int, device: int) -> Iterator[None]:
        self._call("use_stream", stream, self._device(device))
        self._queue(stream, device)
        before_device, streams = self._current()
        before_stream = streams.get(device)
        self._thread.device, streams[device] = device, stream
        try:
            yield
        finally:
            self._thread.device = before_device
            if before_stream is None:
                del streams[device]
            else:
                streams[device] = before_stream

    def record(self, stream: int, device: int, *, timed: bool = False) -> Event:
        self._call("record", stream, self._device(device), timed=timed)
        return self.streams.record(self._queue(stream, device), timed)

    def wait(self, stream: int, event: Event) -> None:
        queue = self._queue(stream)
        self._call("wait", stream, queue.device, event=event)
        assert isinstance(event, FakeEvent), event
        self.streams.put(queue, (event,))

    def elapsed(self, start: Event, end: Event) -> float:
        self._call("elapsed")
        assert isinstance(start, FakeEvent) and isinstance(end, FakeEvent)
        if not (start.timed and end.timed and start.finished and end.finished):
            raise DriverError("elapsed", 600, "an event is not timed, or not done")
        return end.at - start.at

    def synchronize(self, stream: int | None = None, device: int | None = None) -> None:
        self._call("synchronize", stream, device)
        if stream is not None:
            waits = [self._queue(stream, device)]
        else:
            device = self._current()[0] if device is None else self._device(device)
            with self.streams.changed:
                waits = [queue for queue in self.streams.queues if queue.device == device]
        for event in [self.streams.record(queue) for queue in waits]:
            event.wait()

    # Inside

    def _call(
        self,
        name: str,
        stream: int | None = None,
        device: int | None = None,
        *,
        check: bool = True,
        args_from: Allocation | None = None,
        **args: Any,
    ) -> None:
        if check and os.getpid() != self._pid:
            raise ForkedProcess("this child was forked from a process that uses the fake device; use spawn")
        if args_from is not None:
            args = {key: getattr(args_from, key) for key in ("address", "nbytes", "kind", "place", "serial")}
        call = Call(name, stream, device, args)
        self.calls.append(call)
        if self.on_call is not None:
            self.on_call(call)
        with self._lock:
            failures = self._failures.get(name)
            error = failures.popleft() if failures else None
        if error is not None:
            raise error

    def _device(self, device: int) -> int:
        if not 0 <= device < self.devices:
            raise DriverError("device", 101, f"invalid device ordinal {device} of {self.devices}")
        return device

    def _current(self) -> tuple[int, dict[int, int]]:
        if not hasattr(self._thread, "device"):
            self._thread.device, self._thread.streams = 0, {}
        return self._thread.device, self._thread.streams

    def _default(self) -> int:
        return PER_THREAD if self.per_thread_default else 0

    def _queue(self, stream: int | None, device: int | None = None) -> Queue:
        current, streams = self._current()
        if stream is None:
            stream = streams.get(current if device is None else device, self._default())
        with self._lock:
            if stream not in (0, 1, PER_THREAD):
                if stream not in self._handles:
                    raise DriverError("stream", 400, f"invalid resource handle {stream}")
                queue = self._handles[stream]
                if device is not None and device != queue.device:
                    raise DriverError("stream", 400, f"stream {stream} is of device {queue.device}, not {device}")
                return queue
            device = current if device is None else self._device(device)
            key = (device, stream, threading.get_ident() if stream == PER_THREAD else 0)
            if key not in self._defaults:
                self._defaults[key] = self.streams.add(device, stream)
            return self._defaults[key]

    def _used(self, place: Place) -> int:
        return sum(one.nbytes for one in self.live.values() if one.place == place)

    def _managed(self, address: int) -> tuple[Allocation, Pages]:
        allocation = self._table.find(address)
        if allocation is None or allocation.serial not in self._pages:
            raise AssertionError(f"{address:#x} is not managed memory of the fake driver: {allocation}")
        return allocation, self._pages[allocation.serial]

    def _hint(self, call: str, address: int, nbytes: int, place: Place) -> tuple[Pages, slice] | None:
        """The pages that a hint is for; None where it is a no-op. An error where a runtime would refuse it."""
        if isinstance(place, Device):
            self._device(place.id)
        if nbytes <= 0:
            raise DriverError(call, 1, f"{nbytes} bytes: a call that must not reach a runtime")
        allocation = self._table.find(address)
        if call in self.missing or allocation is None or allocation.kind is not Kind.MANAGED:
            return None
        if address + nbytes > allocation.address + allocation.nbytes:
            raise DriverError(call, 1, f"the range ends {nbytes} bytes after {address:#x}, past {allocation}")
        if self.mode is not Mode.MANAGED or (self.unified and call == "prefetch"):
            return None
        pages = self._pages[allocation.serial]
        return pages, pages.span(address - allocation.address, nbytes)

    def _touch(self, address: int, nbytes: int, place: int) -> None:
        if self._alive("access of", address, nbytes):
            allocation, pages = self._managed(address)
            self.page_faults += pages.touch(address - allocation.address, nbytes, place)

    def _alive(self, what: str, address: int, nbytes: int) -> bool:
        with self._lock:
            for start, size, _ in self._freed:
                if address < start + size and start < address + nbytes and self._table.find(address) is None:
                    self.faults.append(f"{what} {nbytes} bytes at {address:#x}, which were freed")
                    return False
        return True

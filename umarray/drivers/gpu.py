"""The driver of a GPU: by CuPy's runtime module, HIP or CUDA."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from umarray import events
from umarray.drivers import fork, probe
from umarray.drivers.base import Advice, Allocation, Array, Attribute, Event, Kind, MemoryInfo, Mode, Outcome, Traits
from umarray.drivers.gpu_calls import (
    ATTACH_GLOBAL,
    COPY_DEFAULT,
    INVALID_DEVICE,
    NON_BLOCKING,
    NOT_SUPPORTED,
    OUT_OF_MEMORY,
    PORTABLE,
    Calls,
    GpuEvent,
    runtime_call,
    stream_class,
)
from umarray.drivers.gpu_hints import GpuHints
from umarray.drivers.host import HostDriver, host_memory
from umarray.drivers.table import AllocationTable
from umarray.errors import DriverError, OutOfMemory
from umarray.places import HOST, Device, Place


class GpuDriver(Calls):
    """`Driver` over CuPy's runtime. `facts` are those of every visible device, by index."""

    page_size = mmap.PAGESIZE  # both vendors' kernel drivers migrate and advise in pages of the system

    def __init__(self, cupy: Any, mode: Mode, reasons: tuple[str, ...], facts: tuple[probe.DeviceFacts, ...]) -> None:
        super().__init__(cupy.cuda.runtime)
        self.xp = cupy
        self.mode = mode
        self.reasons = reasons
        self.name = "hip" if self.runtime.is_hip else "cuda"
        self._facts = facts
        self._traits: dict[int, Traits] = {}
        self._table = AllocationTable()
        self._starts: dict[int, int] = {}  # by serial: what the runtime gave, where that was not a page's start
        self._host = HostDriver(table=self._table)
        self._hints = GpuHints(self.runtime, len(facts), self._table)
        self._stream = stream_class(cupy)

    # Devices

    @runtime_call("runtimeGetVersion")
    def versions(self) -> dict[str, str]:
        runtime, format_version = self.runtime, probe.hip_version if self.name == "hip" else probe.cuda_version
        return {
            "cupy": str(self.xp.__version__),
            "runtime": format_version(runtime.runtimeGetVersion()),
            "driver": format_version(runtime.driverGetVersion()),
        }

    def advice(self) -> tuple[str, ...]:
        return probe.advice(self._facts, os.environ)

    def device_count(self) -> int:
        fork.check(self.born)
        return len(self._facts)

    def traits(self, device: int) -> Traits:
        fork.check(self.born)
        if device not in self._traits:
            if not 0 <= device < len(self._facts):
                raise DriverError("getDeviceProperties", INVALID_DEVICE, f"there is no device {device}")
            facts = self._facts[device]
            readable = probe.device_managed(facts)[0] and self._hints.ranges_can_be_read(device, self.page_size)
            self._traits[device] = probe.device_traits(facts, readable, self._hints.native.renews)
        return self._traits[device]

    @runtime_call("getDevice")
    def current_device(self) -> int:
        return int(self.runtime.getDevice())

    @runtime_call("deviceGetPCIBusId")
    def pci_address(self, device: int) -> str:
        """Where a device is, as "0000:c1:00.0": by this the vendors' tools know it."""
        return str(self.runtime.deviceGetPCIBusId(device)).lower()

    @runtime_call("memGetInfo")
    def memory_info(self, place: Place) -> MemoryInfo:
        if not isinstance(place, Device):
            return host_memory()
        with self.on(place.id):
            free, total = self.runtime.memGetInfo()
            return MemoryInfo(int(free), int(total))

    # Memory

    def allocate(self, nbytes: int, kind: Kind, device: int | None = None) -> Allocation:
        device = self.current_device() if device is None else device
        if kind is Kind.HOST:
            return self._host.allocate(nbytes, kind)
        place: Place = HOST if kind is Kind.PINNED else Device(device)
        try:
            address = self._on_a_page(nbytes, kind, device)
        except DriverError as error:
            raise self._refused(error, nbytes, kind, place) from None
        start, address = address, -(-address // self.page_size) * self.page_size
        allocation = self._table.add(address, nbytes, kind, place)
        if start != address:
            self._starts[allocation.serial] = start
        if events.listeners:
            events.emit(events.Allocated(address, nbytes, kind.value, place))
        return allocation

    def free(self, allocation: Allocation) -> None:
        if fork.generation() != self.born:
            return  # a forked child's finalisers must not touch its parent's memory
        if allocation.kind is Kind.HOST:
            self._host.free(allocation)
            return
        self._table.remove(allocation)
        self._free(self._starts.pop(allocation.serial, allocation.address), allocation.kind)
        if events.listeners:
            events.emit(events.Freed(allocation.address, allocation.nbytes, allocation.kind.value, allocation.place))

    @runtime_call("pointerGetAttributes")
    def find(self, address: int) -> Allocation | None:
        ours = self._table.find(address)
        if ours is not None:
            return ours
        self._hints.ensure_context()
        found = self._hints.native.describe(address)
        if found is None:
            return None
        place = HOST if found.kind is Kind.PINNED else Device(found.device)
        return Allocation(found.start, found.nbytes, found.kind, place, found.serial)

    @runtime_call("as_array")
    def as_array(
        self,
        address: int,
        nbytes: int,
        owner: object,
        device: int | None = None,
        dtype: Any = "u1",
        shape: tuple[int, ...] | None = None,
    ) -> Array:
        cuda = self.xp.cuda
        device = int(self.runtime.getDevice()) if device is None else device
        memory = cuda.UnownedMemory(address, nbytes, owner, device)  # without the device CuPy would ask the runtime
        return self.xp.ndarray((nbytes,) if shape is None else shape, dtype, cuda.MemoryPointer(memory, 0))

    # Hints

    def prefetch(self, address: int, nbytes: int, place: Place, stream: int) -> Outcome:
        return self._hints.prefetch(address, nbytes, place, stream, self._traits_at(place))

    def renew(self, address: int, nbytes: int, place: Place, stream: int) -> Outcome:
        return self._hints.renew(address, nbytes, place, stream, self._traits_at(place))

    def advise(self, address: int, nbytes: int, advice: Advice, place: Place, on: bool) -> Outcome:
        return self._hints.advise(address, nbytes, advice, place, on, self._traits_at(place))

    def read_range(self, address: int, nbytes: int, attribute: Attribute) -> Any:
        return self._hints.read_range(address, nbytes, attribute)

    def host_share(self, address: int, nbytes: int) -> float | None:
        return self._hints.host_share(address, nbytes)

    # Work

    @runtime_call("memcpyAsync")
    def copy(self, target: int, source: int, nbytes: int, stream: int) -> None:
        self.runtime.memcpyAsync(target, source, nbytes, COPY_DEFAULT, stream)

    @runtime_call("memsetAsync")
    def fill(self, address: int, value: int, nbytes: int, stream: int) -> None:
        self.runtime.memsetAsync(address, value, nbytes, stream)

    @runtime_call("launchKernel")
    def traverse(self, source: int, target: int, nbytes: int, stream: int, device: int) -> None:
        with self.use_stream(stream, device):
            given, out = (self.as_array(one, nbytes, None, device).view("u4") for one in (source, target))
            self.xp.add(given, 1, out=out)

    @runtime_call("streamCreateWithFlags")
    def create_stream(self, device: int) -> int:
        with self.on(device):
            return int(self.runtime.streamCreateWithFlags(NON_BLOCKING))

    @runtime_call("streamDestroy")
    def destroy_stream(self, stream: int, device: int) -> None:
        with self.on(device):
            self.runtime.streamDestroy(stream)

    @runtime_call("getDevice")
    def current_stream(self, device: int | None = None) -> int:
        return int(self.xp.cuda.get_current_stream(-1 if device is None else device).ptr)

    @contextmanager
    def use_stream(self, stream: int, device: int) -> Iterator[None]:
        fork.check(self.born)
        with self.xp.cuda.Device(device), self._stream(stream, device):
            yield

    @runtime_call("eventRecord")
    def record(self, stream: int, device: int, *, timed: bool = False) -> Event:
        if self.runtime.getDevice() == device:  # nearly always, and `on` costs as much as the rest
            return self._record(stream, timed)
        with self.on(device):
            return self._record(stream, timed)

    def _record(self, stream: int, timed: bool) -> GpuEvent:
        event = GpuEvent(self, timed)
        self.runtime.eventRecord(event.handle, stream)
        return event

    @runtime_call("streamWaitEvent")
    def wait(self, stream: int, event: Event) -> None:
        assert isinstance(event, GpuEvent), event
        self.runtime.streamWaitEvent(stream, event.handle)

    @runtime_call("eventElapsedTime")
    def elapsed(self, start: Event, end: Event) -> float:
        assert isinstance(start, GpuEvent) and isinstance(end, GpuEvent), (start, end)
        return float(self.runtime.eventElapsedTime(start.handle, end.handle)) / 1000

    @runtime_call("streamSynchronize")
    def synchronize(self, stream: int | None = None, device: int | None = None) -> None:
        with self.on(int(self.runtime.getDevice()) if device is None else device):
            if stream is None:
                self.runtime.deviceSynchronize()
            else:
                self.runtime.streamSynchronize(stream)

    # Inside

    def _traits_at(self, place: Place) -> Traits:
        return self.traits(place.id if isinstance(place, Device) else self.current_device())

    def _on_a_page(self, nbytes: int, kind: Kind, device: int) -> int:
        """Memory with room for `nbytes` from a page's start on, no page of it shared with another allocation."""
        whole = -(-nbytes // self.page_size) * self.page_size
        start = self._raw(whole, kind, device)
        if start % self.page_size == 0:
            return start
        self._free(start, kind)  # runtimes put small blocks side by side
        return self._raw(whole + self.page_size, kind, device)

    def _raw(self, nbytes: int, kind: Kind, device: int) -> int:
        if kind is Kind.PINNED:
            return self._pinned(nbytes)
        return self._managed(nbytes, device) if kind is Kind.MANAGED else self._plain(nbytes, device)

    @runtime_call("hostAlloc")
    def _pinned(self, nbytes: int) -> int:
        return int(self.runtime.hostAlloc(nbytes, PORTABLE))

    @runtime_call("mallocManaged")
    def _managed(self, nbytes: int, device: int) -> int:
        with self.on(device):
            return int(self.runtime.mallocManaged(nbytes, ATTACH_GLOBAL))

    @runtime_call("malloc")
    def _plain(self, nbytes: int, device: int) -> int:
        with self.on(device):
            return int(self.runtime.malloc(nbytes))

    @runtime_call("free")
    def _free(self, address: int, kind: Kind) -> None:
        if kind is Kind.PINNED:
            self.runtime.freeHost(address)
        else:
            self.runtime.free(address)

    def _refused(self, error: DriverError, nbytes: int, kind: Kind, place: Place) -> Exception:
        """The error for an allocation that the runtime refused."""
        if error.code == OUT_OF_MEMORY:
            info = self.memory_info(place)
            text = f"{error.call}: {'pinned host' if kind is Kind.PINNED else kind.value} memory is exhausted"
            return OutOfMemory(nbytes, info.total - info.free, info.total, text)
        if error.code == NOT_SUPPORTED and kind is Kind.MANAGED:
            text = f"{error.text}; this device has no managed memory: set UMARRAY_MODE=explicit"
            return DriverError(error.call, error.code, text)
        return error

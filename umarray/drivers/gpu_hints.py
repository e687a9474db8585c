"""Prefetch, advice and what can be read back of them, on a GPU."""

from __future__ import annotations

import ctypes
import mmap
import threading
from collections.abc import Callable
from typing import Any

from umarray.drivers import native
from umarray.drivers.base import Advice, Attribute, Kind, Outcome, Traits
from umarray.drivers.gpu_calls import (
    ATTACH_GLOBAL,
    INVALID_DEVICE,
    INVALID_VALUE,
    NOT_SUPPORTED,
    SUCCESS,
    Calls,
    runtime_call,
)
from umarray.drivers.page_table import PageTable
from umarray.drivers.table import AllocationTable
from umarray.errors import DriverError
from umarray.places import HOST, Device, Place

# A hint that a runtime refuses with one of these is a no-op, never an error.
_REFUSALS = frozenset({INVALID_VALUE, INVALID_DEVICE, native.NOT_FOUND, NOT_SUPPORTED})
_NOWHERE = -2


class GpuHints(Calls):
    """The hints of a driver. `devices` is how many there are; `table` knows our own memory."""

    def __init__(self, runtime: Any, devices: int, table: AllocationTable) -> None:
        super().__init__(runtime)
        self.native = native.HipNative() if runtime.is_hip else native.CudaNative()
        self._devices = devices
        self._table = table
        self._thread = threading.local()
        self._page_table = PageTable()
        self._tells: bool | None = None

    def prefetch(self, address: int, nbytes: int, place: Place, stream: int, traits: Traits) -> Outcome:
        if not traits.prefetch or not self._managed("memPrefetchAsync", address, nbytes):
            return Outcome.UNSUPPORTED
        return _outcome(lambda: self._prefetch(address, nbytes, place, stream))

    def renew(self, address: int, nbytes: int, place: Place, stream: int, traits: Traits) -> Outcome:
        if not traits.renew or not self._managed("memDiscardAndPrefetch", address, nbytes):
            return Outcome.UNSUPPORTED
        return _outcome(lambda: self._renew(address, nbytes, place, stream))

    def advise(self, address: int, nbytes: int, advice: Advice, place: Place, on: bool, traits: Traits) -> Outcome:
        if not traits.managed or (advice is Advice.COARSE_GRAIN and not traits.coarse_grain):
            return Outcome.UNSUPPORTED
        if advice is Advice.ACCESSED_BY and not isinstance(place, Device) and self.runtime.is_hip:
            return Outcome.UNSUPPORTED  # HIP would unset device 0's; the host reaches managed memory anyway
        if not self._managed("memAdvise", address, nbytes):
            return Outcome.UNSUPPORTED
        return _outcome(lambda: self._advise(address, nbytes, advice.value + (not on), place))

    @runtime_call("memRangeGetAttribute")
    def read_range(self, address: int, nbytes: int, attribute: Attribute) -> Any:
        self.ensure_context()
        count = self._devices + 1 if attribute is Attribute.ACCESSED_BY else 1
        values = self.native.read_range(address, nbytes, attribute.value, count)
        if values is None:
            return None
        if attribute is Attribute.READ_MOSTLY:
            return bool(values[0])
        if attribute is Attribute.ACCESSED_BY:
            return tuple(_place(value) for value in values if value > _NOWHERE)
        return _place(values[0]) if values[0] > _NOWHERE else False

    @runtime_call("getDevice")
    def host_share(self, address: int, nbytes: int) -> float | None:
        return self._page_table.share(address, nbytes) if self._page_table_tells() else None

    def ranges_can_be_read(self, device: int, page_size: int) -> bool:
        """Try it on a page: without HMM, HIP takes every advice, and only reading it back tells."""
        with self.on(device):
            try:
                address = self.runtime.mallocManaged(page_size, ATTACH_GLOBAL)
            except self.error:
                return False
            try:
                self.runtime.memAdvise(address, page_size, Advice.READ_MOSTLY.value, device)
                readable = self.read_range(address, page_size, Attribute.READ_MOSTLY) is True
                self.runtime.memAdvise(address, page_size, Advice.READ_MOSTLY.value + 1, device)
                return readable
            except (self.error, DriverError):
                return False
            finally:
                self.runtime.free(address)

    def ensure_context(self) -> None:
        """Make the current device's context current, which the native library does not do by itself."""
        ready = self._thread.__dict__.setdefault("ready", set())
        device = self.runtime.getDevice()
        if device not in ready:
            self.runtime.setDevice(device)
            self.runtime.memGetInfo()
            ready.add(device)

    def _page_table_tells(self) -> bool:
        """Try it on a page, once: a write of the host must put it into the table, one of the device take it out."""
        if self._tells is None:
            self._tells = self._page_table.readable and self._try_page_table()
        return self._tells

    def _try_page_table(self) -> bool:
        page, found = mmap.PAGESIZE, self._page_table
        try:
            address = int(self.runtime.mallocManaged(page, ATTACH_GLOBAL))
        except self.error:
            return False
        try:
            ctypes.memset(address, 1, page)
            here = found.share(address, page)
            self.runtime.memset(address, 0, page)
            self.runtime.deviceSynchronize()
            return (here, found.share(address, page)) == (1.0, 0.0)
        except self.error:
            return False
        finally:
            self.runtime.free(address)

    @runtime_call("memDiscardAndPrefetch")
    def _renew(self, address: int, nbytes: int, place: Place, stream: int) -> None:
        self.ensure_context()
        _check("memDiscardAndPrefetchBatchAsync", self.native.renew(address, nbytes, _number(place), stream))

    @runtime_call("memPrefetchAsync")
    def _prefetch(self, address: int, nbytes: int, place: Place, stream: int) -> None:
        if self._must_name_host(place):
            self.ensure_context()
            _check("cuMemPrefetchAsync", self.native.prefetch_to_host(address, nbytes, stream))
        else:
            self.runtime.memPrefetchAsync(address, nbytes, _number(place), stream)

    @runtime_call("memAdvise")
    def _advise(self, address: int, nbytes: int, advice: int, place: Place) -> None:
        if self._must_name_host(place):
            self.ensure_context()
            _check("cuMemAdvise", self.native.advise_host(address, nbytes, advice))
        else:
            self.runtime.memAdvise(address, nbytes, advice, _number(place))

    def _must_name_host(self, place: Place) -> bool:
        """Whether the host is meant where CuPy cannot say it: its builds for CUDA 13 take a device only."""
        return not isinstance(place, Device) and not self.runtime.is_hip

    def _managed(self, call: str, address: int, nbytes: int) -> bool:
        """Whether the memory is managed as far as we know; a range past its allocation is an error."""
        ours = self._table.find(address)
        if ours is None:
            return True  # another's: the runtime says
        if not 0 < nbytes <= ours.address + ours.nbytes - address:
            raise DriverError(call, INVALID_VALUE, f"{nbytes} bytes at {address:#x} do not lie within {ours}")
        return ours.kind is Kind.MANAGED


def _outcome(call: Callable[[], None]) -> Outcome:
    try:
        call()
    except DriverError as error:
        if error.code not in _REFUSALS:
            raise
        return Outcome.UNSUPPORTED
    return Outcome.ASKED


def _check(call: str, status: int) -> None:
    if status != SUCCESS:
        raise DriverError(call, status, "see CUresult in cuda.h")


def _number(place: Place) -> int:
    return place.id if isinstance(place, Device) else -1


def _place(number: int) -> Place:
    return HOST if number < 0 else Device(number)

"""What CuPy lacks, by ctypes on the vendor's library that is loaded anyway.

CUDA: the driver library libcuda. Its `cuMemPrefetchAsync_v2` and `cuMemAdvise_v2` name the host as a place, which
CuPy's builds for CUDA 13 cannot; range attributes, pointer attributes and discarding are in no CuPy. HIP: range
attributes, discarding, and whether memory of others is managed. Statuses are returned as numbers, 0 being success; what
is missing is `None`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from umarray.drivers.base import Kind

_int, _size, _pointer = ctypes.c_int, ctypes.c_size_t, ctypes.c_void_p
NOT_FOUND = 500  # cudaErrorSymbolNotFound, hipErrorNotFound


class Described(NamedTuple):
    """Memory that somebody else allocated."""

    kind: Kind
    start: int
    nbytes: int
    device: int
    serial: int


class _Location(ctypes.Structure):
    """CUmemLocation (cuda.h)."""

    _fields_ = [("type", _int), ("id", _int)]


_ON_HOST = _Location(2, 0)  # CU_MEM_LOCATION_TYPE_HOST
_CPU = -1  # CU_DEVICE_CPU, what the calls of before 12.2 take
_BUFFER_ID, _MEMORY_TYPE, _IS_MANAGED, _ORDINAL = 7, 2, 8, 9  # CUpointer_attribute


class _HipAttributes(ctypes.Structure):
    """hipPointerAttribute_t (hip_runtime_api.h), laid out the same from ROCm 5 to 7; `type` changed its meaning."""

    _fields_ = [
        ("type", _int),
        ("device", _int),
        ("device_pointer", _pointer),
        ("host_pointer", _pointer),
        ("managed", _int),
        ("flags", ctypes.c_uint),
    ]


def loaded_libraries() -> tuple[Path, ...]:
    """Shared objects that are mapped into this process."""
    try:
        lines = Path("/proc/self/maps").read_text().splitlines()
    except OSError:
        return ()
    paths = {line.split(maxsplit=5)[5] for line in lines if "/" in line and ".so" in line}
    return tuple(sorted(Path(path) for path in paths))


def _location(place: int) -> _Location:
    return _ON_HOST if place < 0 else _Location(1, place)  # CU_MEM_LOCATION_TYPE_DEVICE; HIP numbers them alike


class Native:
    """The calls that both vendors have. A library that is not there (None) is one without symbols."""

    _read_name = ""
    _renew_name = ""

    def __init__(self, library: Any) -> None:
        self._library = library
        batch = (_pointer, _pointer, _size, _pointer, _pointer, _size, ctypes.c_ulonglong, _pointer)
        self._renew = self.symbol(self._renew_name, *batch)
        self._read = self.symbol(self._read_name, _pointer, _size, _int, _pointer, _size)

    def symbol(self, name: str, *arguments: Any) -> Callable[..., int] | None:
        """A function of the library with its argument types, or None where it has no such symbol."""
        try:
            function = getattr(self._library, name)
        except AttributeError:
            return None
        function.argtypes, function.restype = arguments, _int
        found: Callable[..., int] = function
        return found

    def read_range(self, address: int, nbytes: int, attribute: int, values: int = 1) -> tuple[int, ...] | None:
        """What a range attribute holds, or None where the runtime does not say.

        Locations are device indices, -1 for the CPU and -2 for none.
        """
        if self._read is None:
            return None
        data = (_int * values)()
        status = self._read(ctypes.byref(data), ctypes.sizeof(data), attribute, address, nbytes)
        return tuple(data) if status == 0 else None

    @property
    def renews(self) -> bool:
        """Whether the library has the call behind `renew`."""
        return self._renew is not None

    def renew(self, address: int, nbytes: int, place: int, stream: int) -> int:
        """Discard a range's contents and prefetch its pages, to a device or (-1) to the host."""
        if self._renew is None:
            return NOT_FOUND
        one, ranges, sizes, where, which = ctypes.byref, _pointer(address), _size(nbytes), _location(place), _size(0)
        return self._renew(one(ranges), one(sizes), 1, one(where), one(which), 1, 0, stream)

    def describe(self, address: int) -> Described | None:
        raise NotImplementedError

    def prefetch_to_host(self, address: int, nbytes: int, stream: int) -> int:
        raise NotImplementedError

    def advise_host(self, address: int, nbytes: int, advice: int) -> int:
        raise NotImplementedError


class CudaNative(Native):
    """libcuda. The caller makes a context current first: any runtime call on this thread does."""

    _read_name = "cuMemRangeGetAttribute"
    _renew_name = "cuMemDiscardAndPrefetchBatchAsync"

    def __init__(self) -> None:
        super().__init__(_open("libcuda.so.1"))
        self._prefetch2 = self.symbol("cuMemPrefetchAsync_v2", _pointer, _size, _Location, ctypes.c_uint, _pointer)
        self._prefetch1 = self.symbol("cuMemPrefetchAsync", _pointer, _size, _int, _pointer)
        self._advise2 = self.symbol("cuMemAdvise_v2", _pointer, _size, _int, _Location)
        self._advise1 = self.symbol("cuMemAdvise", _pointer, _size, _int, _int)
        self._pointer = self.symbol("cuPointerGetAttribute", _pointer, _int, _pointer)
        self._range = self.symbol("cuMemGetAddressRange_v2", _pointer, _pointer, _pointer)

    def prefetch_to_host(self, address: int, nbytes: int, stream: int) -> int:
        if self._prefetch2 is not None:
            return self._prefetch2(address, nbytes, _ON_HOST, 0, stream)
        if self._prefetch1 is not None:
            return self._prefetch1(address, nbytes, _CPU, stream)
        return NOT_FOUND

    def advise_host(self, address: int, nbytes: int, advice: int) -> int:
        if self._advise2 is not None:
            return self._advise2(address, nbytes, advice, _ON_HOST)
        if self._advise1 is not None:
            return self._advise1(address, nbytes, advice, _CPU)
        return NOT_FOUND

    def describe(self, address: int) -> Described | None:
        memory_type, managed = (
            self._ask(address, _MEMORY_TYPE, _int()),
            self._ask(address, _IS_MANAGED, ctypes.c_uint()),
        )
        if not memory_type:
            return None  # ordinary memory of the process
        kind = Kind.MANAGED if managed else Kind.PINNED if memory_type == 1 else Kind.DEVICE
        start, nbytes = ctypes.c_uint64(address), _size(0)
        if kind is not Kind.PINNED and self._range is not None:
            self._range(ctypes.byref(start), ctypes.byref(nbytes), address)
        serial = self._ask(address, _BUFFER_ID, ctypes.c_ulonglong()) or 0
        device = self._ask(address, _ORDINAL, _int()) or 0
        return Described(kind, start.value, nbytes.value, max(0, device), -serial)

    def _ask(self, address: int, attribute: int, value: Any) -> int | None:
        if self._pointer is None or self._pointer(ctypes.byref(value), attribute, address) != 0:
            return None
        return int(value.value)


class HipNative(Native):
    """The libamdhip64 that CuPy has loaded."""

    _read_name = "hipMemRangeGetAttribute"
    _renew_name = "hipMemDiscardAndPrefetchBatchAsync"

    def __init__(self) -> None:
        super().__init__(_open(*(str(path) for path in loaded_libraries() if path.name.startswith("libamdhip64.so"))))
        self._attributes = self.symbol("hipPointerGetAttributes", _pointer, _pointer)
        self._range = self.symbol("hipMemGetAddressRange", _pointer, _pointer, _pointer)

    def describe(self, address: int) -> Described | None:
        """Only managed memory: HIP 6 and later say of other memory what it is not, so nothing is said of it."""
        found = _HipAttributes()
        if self._attributes is None or self._attributes(ctypes.byref(found), address) != 0 or not found.managed:
            return None
        start, nbytes = ctypes.c_uint64(address), _size(0)
        if self._range is not None:
            self._range(ctypes.byref(start), ctypes.byref(nbytes), address)
        return Described(Kind.MANAGED, start.value, nbytes.value, max(0, found.device), 0)


def _open(*names: str) -> Any:
    for name in names:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None

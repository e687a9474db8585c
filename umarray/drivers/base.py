"""The driver seam: what umarray asks of a device, in ints, places and frozen values.

Nothing above this line knows a vendor. `host.HostDriver` and `gpu.GpuDriver` implement `Driver`, and so does the
recording driver of the tests. A foreign exception stops in the driver, which raises ours.

Array libraries: a driver names the one that it goes with as `xp` (numpy or cupy), and `as_array` lays an array of that
library over memory; what is above uses such arrays by the API that both share.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from umarray.places import Device, Place

# Arrays are CuPy's or NumPy's. CuPy ships no types, so they are Any in signatures; the name tells the reader.
Array: TypeAlias = Any


class Mode(Enum):
    """How a process runs; the weakest visible device decides."""

    MANAGED = "managed"
    EXPLICIT = "explicit"
    HOST = "host"


class Kind(Enum):
    """What a range of memory is."""

    MANAGED = "managed"
    DEVICE = "device"
    PINNED = "pinned"
    HOST = "host"  # ordinary memory of the process


class Advice(Enum):
    """Standing hints about pages; the value is the number by which HIP and CUDA both set it."""

    READ_MOSTLY = 1
    PREFERRED_LOCATION = 3
    ACCESSED_BY = 5
    COARSE_GRAIN = 100  # HIP only


class Attribute(Enum):
    """What can be asked of a range of managed memory; the value is the runtime's number for it."""

    READ_MOSTLY = 1
    PREFERRED_LOCATION = 2
    ACCESSED_BY = 3
    LAST_PREFETCH_LOCATION = 4


class Outcome(Enum):
    """What became of a hint. A hint can only be asked for: nothing here says that pages moved."""

    ASKED = "asked"
    UNSUPPORTED = "unsupported"  # a no-op: the runtime, the device or the memory cannot; counted by the caller


@dataclass(frozen=True, slots=True)
class Traits:
    """What one device can do, probed once."""

    device: Device
    name: str
    architecture: str
    total_bytes: int
    managed: bool
    """Faults and migrates: managed mode is possible."""
    unified: bool
    """One physical memory for host and device (an APU): nothing ever has to move."""
    prefetch: bool
    """The prefetch call exists and does something here."""
    prefetch_blocks: bool
    """A prefetch keeps its caller until the pages have moved (ROCm 6): issue it from a helper thread."""
    readable_ranges: bool
    """Advice and the last prefetch can be read back from the runtime."""
    coarse_grain: bool
    """HIP's coarse-grain advice exists."""
    reasons: tuple[str, ...]
    """A sentence for each conclusion above."""
    renew: bool = False
    """Pages can be made resident elsewhere without their contents (CUDA 13, HIP 7.1)."""


@dataclass(frozen=True, slots=True)
class Allocation:
    """One driver allocation. `serial` tells it from a later one at the same address."""

    address: int
    nbytes: int
    kind: Kind
    place: Place
    serial: int


@dataclass(frozen=True, slots=True)
class MemoryInfo:
    """Bytes free and in all."""

    free: int
    total: int


class Event(Protocol):
    """A point in a stream's work. Holds what it needs; dropping it frees it."""

    def done(self) -> bool:
        """Whether the work before it has finished; never waits."""

    def wait(self) -> None:
        """Keep the calling host thread until the work before it has finished."""


@runtime_checkable
class Driver(Protocol):
    """What a device, or none, can be asked to do.

    Notes
    -----
    Safe from any thread. `device` is an index; where it may be left out it is the thread's current one. `stream` is the
    runtime's handle as an int, 0 being the legacy default stream. Calls with a stream are asynchronous.
    Addresses are ints. Sizes are bytes and positive; a call of zero bytes never reaches a runtime.
    After a fork every method but `free` raises `ForkedProcess` in the child; `free` does nothing there.
    """

    name: str  # "host", "cuda", "hip"
    mode: Mode
    reasons: tuple[str, ...]
    page_size: int
    """Prefetch and advice act on whole pages of this many bytes."""
    xp: Any
    """The array library: numpy or cupy."""

    # Devices
    def versions(self) -> dict[str, str]:
        """Of the array library, the vendor's runtime and driver, by name."""

    def advice(self) -> tuple[str, ...]:
        """What could be set outside the process, and what that would change, in words."""

    def device_count(self) -> int: ...
    def traits(self, device: int) -> Traits: ...
    def current_device(self) -> int: ...
    def memory_info(self, place: Place) -> MemoryInfo: ...

    # Memory
    def allocate(self, nbytes: int, kind: Kind, device: int | None = None) -> Allocation:
        """A page-aligned allocation. Raises `OutOfMemory`; changes nothing then."""

    def free(self, allocation: Allocation) -> None:
        """Give it back. Waits for nothing by itself, though a runtime may."""

    def find(self, address: int) -> Allocation | None:
        """The allocation that holds `address`: ours from our own table, another's as far as the runtime tells.

        None where nobody knows the address (ordinary host memory, as a rule).
        """

    def as_array(
        self,
        address: int,
        nbytes: int,
        owner: object,
        device: int | None = None,
        dtype: Any = np.uint8,
        shape: tuple[int, ...] | None = None,
    ) -> Array:
        """An `xp` array over memory, by default of bytes and 1-D; it, and each view of it, keeps `owner` alive."""

    # Hints
    def prefetch(self, address: int, nbytes: int, place: Place, stream: int) -> Outcome: ...
    def renew(self, address: int, nbytes: int, place: Place, stream: int) -> Outcome:
        """Make whole pages resident at `place` without moving what they hold, which is lost: write them first."""

    def advise(self, address: int, nbytes: int, advice: Advice, place: Place, on: bool) -> Outcome: ...
    def read_range(self, address: int, nbytes: int, attribute: Attribute) -> Any:
        """What the runtime says of a range; None where it cannot be read.

        A bool for READ_MOSTLY; a `Place`, or False where there is none, for the locations; a tuple of places for
        ACCESSED_BY.
        """

    def host_share(self, address: int, nbytes: int) -> float | None:
        """The share of a range that the host reaches now without a fault, looked up and not remembered.

        None where nobody can say. A large range is sampled. What the host does not reach lies on a device, or was never
        touched.
        """

    # Work
    def copy(self, target: int, source: int, nbytes: int, stream: int) -> None:
        """Copy bytes; the runtime infers the direction."""

    def fill(self, address: int, value: int, nbytes: int, stream: int) -> None: ...
    def traverse(self, source: int, target: int, nbytes: int, stream: int, device: int) -> None:
        """Queue a kernel that reads one range and writes another, element by element: each page as it comes to it.

        Whole multiples of 4 bytes, at addresses that the device reaches. For measuring what a touch costs.
        """

    def create_stream(self, device: int) -> int:
        """A non-blocking stream."""

    def destroy_stream(self, stream: int, device: int) -> None: ...
    def current_stream(self, device: int | None = None) -> int: ...
    def use_stream(self, stream: int, device: int) -> AbstractContextManager[None]:
        """Make the device and stream the current ones of this thread for `xp`."""

    def record(self, stream: int, device: int, *, timed: bool = False) -> Event: ...
    def wait(self, stream: int, event: Event) -> None:
        """Work queued on `stream` from now on waits for `event`; the host does not."""

    def elapsed(self, start: Event, end: Event) -> float:
        """Seconds between two timed events that are done."""

    def synchronize(self, stream: int | None = None, device: int | None = None) -> None:
        """Keep the calling thread until a stream, or with no stream the whole device, is idle."""


class _Bytes:
    """An object with NumPy's array interface over raw memory, keeping an owner alive."""

    __slots__ = ("__array_interface__", "owner")

    def __init__(self, address: int, nbytes: int, owner: object, readonly: bool) -> None:
        self.owner = owner
        self.__array_interface__ = {"version": 3, "shape": (nbytes,), "typestr": "|u1", "data": (address, readonly)}


def host_bytes(
    address: int, nbytes: int, owner: object, *, readonly: bool = False
) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """A NumPy array of bytes over memory that the host may touch; it, and each view, keeps `owner` alive."""
    return np.asarray(_Bytes(address, nbytes, owner, readonly))


def host_array(address: int, nbytes: int, owner: object, dtype: Any, shape: tuple[int, ...] | None) -> Array:
    """What `Driver.as_array` gives where arrays are NumPy's."""
    memory = host_bytes(address, nbytes, owner)
    return memory if shape is None else np.ndarray(shape, dtype, memory)


def check_place(driver: Driver, place: Place) -> Place:
    """`place`, after a look whether the device exists.

    Without a device any index passes: the same program must run there, and a hint is a no-op.

    Raises
    ------
    ValueError
        The device is not there; the text says which are.
    """
    if isinstance(place, Device) and driver.mode is not Mode.HOST:
        count = driver.device_count()
        if place.id >= count:
            known = "only device 0" if count == 1 else f"devices 0 to {count - 1}"
            raise ValueError(f"there is no device {place.id}: this process sees {known}")
    return place

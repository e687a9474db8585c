"""Arrays over the recording driver's memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import umarray as um
from tests.fake_driver import FakeDriver
from umarray.drivers.base import Attribute, Kind
from umarray.places import HOST, Device
from umarray.residency.spans import layout_of

PAGE = 4096


def managed(fake: FakeDriver, pages: float = 4, dtype: str = "f4", kind: Kind = Kind.MANAGED, device: int = 0) -> Any:
    """A page-aligned 1-D array on an allocation of its own."""
    block = fake.allocate(int(pages * PAGE), kind, device)
    array = fake.as_array(block.address, block.nbytes, block).view(dtype)
    array[...] = 0
    if kind is Kind.MANAGED:
        fake.host_touch(block.address, block.nbytes)
        fake.page_faults = 0
    return array


def address(x: Any) -> int:
    return layout_of(x).range[0]


def allocation(fake: FakeDriver, x: Any) -> Any:
    found = fake.find(address(x))
    assert found is not None
    return found


def prefetches(fake: FakeDriver) -> list[tuple[int, int, Any]]:
    """Address, bytes and place of each prefetch so far."""
    return [(c.args["address"], c.args["nbytes"], c.args["place"]) for c in fake.named("prefetch")]


def hints(fake: FakeDriver) -> int:
    """Calls that move or advise anything, or queue anything."""
    return len(fake.named("prefetch", "advise", "record", "wait", "copy", "synchronize", "create_stream"))


SCOPES: list[Callable[[Any], Any]] = [
    lambda x: um.prefetch(x, back=HOST),
    lambda x: um.advise(x, read_mostly=True, preferred_location=Device(0), accessed_by=[HOST]),
]


def standing(fake: FakeDriver, x: Any) -> tuple[Any, ...]:
    block = allocation(fake, x)
    return tuple(
        fake.read_range(block.address, block.nbytes, attribute)
        for attribute in (Attribute.READ_MOSTLY, Attribute.PREFERRED_LOCATION, Attribute.ACCESSED_BY)
    )


class FakeCupy:
    """An array as CuPy's looks from outside: NumPy has no `.data.ptr`, and a device."""

    def __init__(self, array: np.ndarray[Any, Any], device: int = 0) -> None:
        self._array, self.shape, self.strides, self.dtype = array, array.shape, array.strides, array.dtype
        self.data = type("MemoryPointer", (), {"ptr": array.ctypes.data, "device_id": device})()

"""Arrays on allocations of their own, and a kernel that keeps a stream busy until it is let go."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from umarray.drivers.base import Allocation, Driver, Kind, host_bytes

SIZE = 64 << 20  # bytes; small beside the guard's limit

_SPIN = r"""
extern "C" __global__ void spin(const volatile int* gate, long long ticks) {
    for (long long start = clock64(); clock64() - start < ticks && !*gate;) { }
}
"""


class Block:
    """Memory of the driver's; every CuPy array over it keeps it alive, and it frees itself after them."""

    def __init__(self, driver: Driver, nbytes: int, kind: Kind) -> None:
        self._driver = driver
        self.allocation: Allocation = driver.allocate(nbytes, kind, 0)

    def __del__(self) -> None:
        self._driver.synchronize()
        self._driver.free(self.allocation)


def array(driver: Driver, shape: Any = SIZE // 4, dtype: Any = "f4", kind: Kind = Kind.MANAGED) -> Any:
    """A CuPy array on an allocation of its own; ask `.data.mem` for nothing, its owner is a `Block`."""
    nbytes = math.prod(np.atleast_1d(shape).tolist()) * np.dtype(dtype).itemsize
    block = Block(driver, nbytes, kind)
    return driver.as_array(block.allocation.address, nbytes, block, 0).view(dtype).reshape(shape)


def host_write(x: Any, value: int) -> None:
    """Let the host write every byte of a contiguous managed array, past umarray."""
    host_bytes(x.data.ptr, x.nbytes, x)[:] = value


@contextmanager
def busy(driver: Driver, stream: int | None = None) -> Iterator[Callable[[], None]]:
    """Keep a stream (default: the current one) busy; call what this gives to let it go on, at most some 30 s later."""
    cupy, gate = driver.xp, driver.allocate(4096, Kind.PINNED)
    word = host_bytes(gate.address, 4, None).view("i4")
    word[0] = 0
    kernel = cupy.RawKernel(_SPIN, "spin")
    kernel.compile()
    stream = driver.current_stream() if stream is None else stream
    with driver.use_stream(stream, 0):
        kernel((1,), (1,), (np.uint64(gate.address), np.int64(50_000_000_000)))

    def let_go() -> None:
        word[0] = 1

    try:
        yield let_go
    finally:
        let_go()
        driver.synchronize()
        driver.free(gate)

"""Limits that CuPy's users set: `set_limit` and CUPY_GPU_MEMORY_LIMIT, kept by us and not by CuPy.

CuPy's own would hold for one lane only, raise an error that does not say what holds the memory, stand above a `limit`
that the program gave, and read neither units nor "false".
"""

from __future__ import annotations

import os
import threading
from typing import Any

import cupy

from umarray import settings
from umarray.memory.budget import LIMIT_VARIABLE
from umarray.memory.cupy_roots import PoolOutOfMemory, capturing
from umarray.memory.pool import Pool
from umarray.places import Device
from umarray.sizes import format_size

_PARTS_ONE_BY_ONE = int(cupy.__version__.partition(".")[0]) < 14  # a pool's parts for devices; since then all at once
_environment = threading.Lock()


class Limited(Pool):
    """The limits of a pool over CuPy, a device each, below what its budget allows."""

    _limits: dict[int, int]

    def set_limit(self, size: Any = None, fraction: Any = None) -> None:
        """Limit what is carved on the current device, below the pool's own limit; no arguments or 0: no more."""
        device = self.driver.current_device()
        if fraction is not None:
            if size is not None:
                raise ValueError("size and fraction cannot be specified at one time")
            if not 0 <= fraction <= 1:
                raise ValueError(f"memory limit fraction out of range: {fraction}")
            size = fraction * self.driver.memory_info(Device(device)).total
        if size is not None and size < 0:
            raise ValueError(f"memory limit size out of range: {size}")
        self._limits[device] = int(size or 0)

    def get_limit(self) -> int:
        """The limit of the current device that `set_limit` or CUPY_GPU_MEMORY_LIMIT set; 0 where there is none."""
        device = self.driver.current_device()
        limit = self._limits.get(device)
        if limit is None:
            from_environment = self._request[1] is None and settings.text(LIMIT_VARIABLE) is not None
            limit = self._limits[device] = self.reserve_of(device).budget.limit if from_environment else 0
        return limit

    def keep_to_limit(self, nbytes: int, stream: int) -> None:
        """Make room for a request that CuPy has counted already; raises where it is beyond the limit."""
        limit = self.get_limit()
        for hard in (False, True):
            if not limit or self.total_bytes() <= limit:  # CuPy has counted this request already
                return
            if not capturing(stream):
                self.reclaim(hard)
        used, total = self.used_bytes(), self.total_bytes() - nbytes
        if total + nbytes > limit:
            raise PoolOutOfMemory(
                nbytes,
                used,
                limit,
                f"{format_size(used)} in arrays and {format_size(total - used)} free in pieces between them: delete "
                "arrays, or raise the limit with set_limit",
            )

    def used_bytes(self) -> int:
        """Bytes of live blocks on the current device."""
        raise NotImplementedError

    def total_bytes(self) -> int:
        """Bytes carved for streams of the current device: used and free."""
        raise NotImplementedError

    def reclaim(self, hard: bool) -> None:
        """Make unused memory come back to the arenas; `hard`: whatever it costs."""
        raise NotImplementedError


def ignore_environment(*pools: Any) -> None:
    """Make CuPy's parts of pools now, where they would read CUPY_GPU_MEMORY_LIMIT later, and let them have no limit."""
    with _environment:
        text = os.environ.pop(LIMIT_VARIABLE, None)
        if text is None:
            return
        try:
            for device in range(cupy.cuda.runtime.getDeviceCount()) if _PARTS_ONE_BY_ONE else (None,):
                with cupy.cuda.Device(device):
                    for pool in pools:
                        cupy.cuda.MemoryPool.set_limit(pool, size=0)
        finally:
            os.environ[LIMIT_VARIABLE] = text

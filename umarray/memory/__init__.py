"""Pools and the arrays that come from them."""

from typing import Any

from umarray.memory.arrays import asarray, asnumpy, empty, zeros
from umarray.memory.current import default_pool, install, installed, pool, pool_class, record_use, uninstall
from umarray.memory.pool import Pool
from umarray.memory.statistics import PoolStatistics
from umarray.memory.tracking import Escape

__all__ = [
    "Escape",
    "ManagedMemoryPool",
    "Pool",
    "PoolStatistics",
    "asarray",
    "asnumpy",
    "default_pool",
    "empty",
    "install",
    "installed",
    "pool",
    "record_use",
    "uninstall",
    "zeros",
]


def __getattr__(name: str) -> Any:
    if name == "ManagedMemoryPool":  # needs CuPy, or stands for it, as the mode has it
        return pool_class()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

"""A forked child gets no memory from its parent's pools: CuPy would serve it from what it holds free, and the first
touch of it would hang or crash.

In the child, an allocator of CuPy's that is one of ours gives way to one that says so. A bound ``pool.malloc`` that
somebody kept cannot be reached.
"""

from __future__ import annotations

import os
from typing import Any

import cupy

from umarray.drivers import current_driver
from umarray.errors import ForkedProcess

_kinds: tuple[type, ...] = ()


def watch(*kinds: type) -> None:
    """Let pools of these types be refused in forked children from now on."""
    global _kinds
    _kinds += kinds


def refuse(nbytes: int) -> Any:
    """An allocator that raises `ForkedProcess`."""
    driver = current_driver()
    if driver is not None:
        driver.current_device()  # raises, in the driver's words
    raise ForkedProcess("this process was forked from one that uses a device: start children with 'spawn'")


def _is_ours(allocator: Any) -> bool:
    return isinstance(getattr(getattr(allocator, "func", allocator), "__self__", None), _kinds)


def _in_child() -> None:
    memory = cupy.cuda.memory
    local = memory._get_thread_local_allocator()
    memory._set_thread_local_allocator(None)
    if _is_ours(cupy.cuda.get_allocator()):
        cupy.cuda.set_allocator(refuse)
    memory._set_thread_local_allocator(refuse if _is_ours(local) else local)


os.register_at_fork(after_in_child=_in_child)

"""What people write by hand in CuPy to bring batches to the device: the plain loop, and two pinned rings.

Each is written as for one program, with nothing general in it, and without umarray. The work of a program is an object
with `steps`, `nbytes`, `shape`, `prep(item, array)` and `compute(array)`.
"""

from __future__ import annotations

import threading
from queue import SimpleQueue
from typing import Any

import numpy as np

SLOTS = 3
HOST_TO_DEVICE = 1  # cudaMemcpyHostToDevice, hipMemcpyHostToDevice


def naive(xp: Any, work: Any) -> list[Any]:
    """Prepare in ordinary memory, copy, compute, wait: one after the other."""
    batch, results = np.empty(work.shape, "f4"), []
    for item in range(work.steps):
        work.prep(item, batch)
        results.append(work.compute(xp.asarray(batch)))
        if xp is not np:
            xp.cuda.get_current_stream().synchronize()
    return results


class PinnedRing:
    """Pinned buffers and device buffers that take turns, a copying stream, events both ways."""

    def __init__(self, cupy: Any, work: Any) -> None:
        self.cupy, self.work = cupy, work
        self.pinned = [cupy.cuda.alloc_pinned_memory(work.nbytes) for _ in range(SLOTS)]
        self.host = [np.frombuffer(one, "f4", work.nbytes // 4).reshape(work.shape) for one in self.pinned]
        self.device = [cupy.empty(work.shape, "f4") for _ in range(SLOTS)]
        self.stream = cupy.cuda.Stream(non_blocking=True)

    def one_thread(self) -> list[Any]:
        """Prepare a batch while the device computes the one before: launches and copies are asynchronous."""
        work, copies, computes = self.work, self.stream, self.cupy.cuda.get_current_stream()
        copied, read = self._events(), self._events()
        results = []
        for item in range(work.steps):
            k = item % SLOTS
            copied[k].synchronize()
            work.prep(item, self.host[k])
            copies.wait_event(read[k])
            self._copy(k)
            copied[k].record(copies)
            computes.wait_event(copied[k])
            results.append(work.compute(self.device[k]))
            read[k].record(computes)
        return results

    def own_thread(self) -> list[Any]:
        """Prepare and copy in a second thread."""
        work, copies, computes = self.work, self.stream, self.cupy.cuda.get_current_stream()
        copied, read = self._events(), self._events()
        free: SimpleQueue[int] = SimpleQueue()
        ready: SimpleQueue[int] = SimpleQueue()
        for k in range(SLOTS):
            free.put(k)

        def prepare() -> None:
            for item in range(work.steps):
                k = free.get()
                copied[k].synchronize()
                work.prep(item, self.host[k])
                copies.wait_event(read[k])
                self._copy(k)
                copied[k].record(copies)
                ready.put(k)

        thread = threading.Thread(target=prepare)
        thread.start()
        results = []
        for _ in range(work.steps):
            k = ready.get()
            computes.wait_event(copied[k])
            results.append(work.compute(self.device[k]))
            read[k].record(computes)
            free.put(k)
        thread.join()
        return results

    def _events(self) -> list[Any]:
        return [self.cupy.cuda.Event(block=True, disable_timing=True) for _ in range(SLOTS)]

    def _copy(self, k: int) -> None:
        target, source = self.device[k].data.ptr, self.host[k].ctypes.data
        self.cupy.cuda.runtime.memcpyAsync(target, source, self.work.nbytes, HOST_TO_DEVICE, self.stream.ptr)

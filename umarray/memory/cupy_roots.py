"""Roots: what lies between CuPy's pool and our arenas.

A lane is the base allocator under one `cupy.cuda.MemoryPool`. CuPy asks it only when it has nothing for a stream. The
lane then serves the request with a root of that size, and has CuPy take in a larger one beside it: it calls CuPy's
`malloc` from inside the allocator, answers the call that comes of it with the large root, and drops the result. From
then on CuPy's own compiled code splits and merges that root, and umarray is not asked.

CuPy drops a root as a whole, under a lock of its own; so a root's finaliser only appends to a deque.
"""

from __future__ import annotations

import gc
import threading
import weakref
from contextlib import suppress
from typing import Any

import cupy
from cupy.cuda import memory_hook

from umarray.errors import NotSupported, OutOfMemory
from umarray.memory.owners import DEFAULT_STREAMS, Owner, owner_of
from umarray.memory.reserve import Range, Reserve, Returned
from umarray.memory.shares import LEAST_ROOT
from umarray.sizes import format_size

_plain_malloc = cupy.cuda.MemoryPool.malloc
_Part = cupy.cuda.memory.SingleDeviceMemoryPool


class PoolOutOfMemory(OutOfMemory, cupy.cuda.memory.OutOfMemoryError):  # type: ignore[misc]
    """A pool of umarray's is out of memory: CuPy's error and ours; it pickles."""

    def __init__(self, requested: int, used: int, limit: int, detail: str = "") -> None:
        MemoryError.__init__(self, requested, used, limit, detail)  # both bases' own would call one another
        self.requested, self.used, self.limit, self.detail = requested, used, limit, detail
        self._size, self._total, self._limit = requested, used, limit

    def __reduce__(self) -> tuple[type, tuple[int, int, int, str]]:
        return type(self), (self.requested, self.used, self.limit, self.detail)


class _Root:
    """Goes back to its arena when CuPy drops it."""

    __slots__ = ("_back", "_returned")

    def __init__(self, found: Range, returned: Returned) -> None:
        self._back = (found.slab, found.offset, (found.owner,))  # made here: a new tuple may start the collector
        self._returned = returned

    def __del__(self) -> None:
        self._returned.append(self._back)


class _Local(threading.local):
    prepared: tuple[int, Any] | None = None  # bytes, and the answer for a request of as many


class Lane:
    """The base allocator of one CuPy pool.

    Parameters
    ----------
    owner : pool
        The pool of ours that it is part of; held weakly, so that dropping the pool is seen at once.
    name : str
        Tells lanes apart: each learns its own sizes.
    """

    def __init__(self, owner: Any, name: str) -> None:
        self._owner = weakref.ref(owner)
        self.name = name
        self.pool: Any = None  # a weak reference to the CuPy pool, set by whoever makes it
        self._local = _Local()

    def allocate(self, nbytes: int) -> Any:
        """What CuPy calls for a block that it has no room for; the answer is a root of its own."""
        prepared = self._local.prepared
        if prepared is not None and prepared[0] == nbytes:  # else a finaliser allocates while CuPy takes in a root
            self._local.prepared = None
            return prepared[1]
        ours, pool = self._owner(), self.pool()
        if ours is None or pool is None:
            raise MemoryError("this pool is being torn down")
        device = ours.driver.current_device()
        if not ours.has_reserve(device):
            refuse_in_capture(int(cupy.cuda.get_current_stream().ptr), nbytes)
        reserve = ours.reserve_of(device)
        if nbytes <= 0:  # CuPy counts in 64 bits, and hands over a signed number
            raise PoolOutOfMemory(nbytes % 2**64, ours.used_bytes(), reserve.budget.limit, "no memory is that large")
        owner = self._stream_owner(device)
        ours.missed(nbytes, owner)
        held = reserve.carved.get(owner, 0)
        try:
            found = reserve.obtain(nbytes, owner, reclaim=ours.reclaim)
        except OutOfMemory as error:
            raise PoolOutOfMemory(error.requested, error.used, error.limit, error.detail) from None
        pointer = _pointer(found, reserve, device)
        free, _ = reserve.free_bytes()
        share = ours.shares_of(device).share(owner, found.nbytes, held, free)
        self._prime(ours, pool, reserve, owner, share)
        return pointer

    def _prime(self, ours: Any, pool: Any, reserve: Reserve, owner: Owner, share: int) -> None:
        """Let CuPy take in a root to carve from. That it cannot be done is no error."""
        limit = ours.get_limit()
        if limit:
            share = min(share, max(0, limit - ours.total_bytes()) // 4)
        share = share // 512 * 512
        if share < LEAST_ROOT:
            return
        with suppress(OutOfMemory, NotSupported):
            found = reserve.find(share, owner, least=LEAST_ROOT)
            if found is None:
                return
            self._local.prepared = found.nbytes, _pointer(found, reserve, owner.device)
            hooks = memory_hook.get_memory_hooks() if memory_hook._has_memory_hooks() else {}
            hidden = dict(hooks)
            hooks.clear()  # the hooks are told of blocks, which this is none
            try:
                _plain_malloc(pool, found.nbytes)
            except MemoryError:
                pass
            finally:
                hooks.update(hidden)
                self._local.prepared = None

    def _stream_owner(self, device: int) -> Owner:
        stream = cupy.cuda.get_current_stream()
        handle = int(stream.ptr)
        # CuPy 14's Stream.from_external makes a Stream over a handle that another library may destroy.
        own = isinstance(stream, cupy.cuda.Stream) and getattr(stream, "_foreign_stream_ref", None) is None
        lasting = own or handle in DEFAULT_STREAMS
        return owner_of(device, handle, keep=stream, lasting=lasting, lane=self.name)


def cupy_parts(*pools: Any) -> list[Any]:
    """What holds CuPy's part of each pool for each device, to be kept where the garbage collector sees it in use.

    A block finds its way back by a weak reference to such a part. Where a pool dies in a cycle (an object that holds
    it, and is held by a callback), the collector clears weak references before any finaliser could save the pool: its
    blocks would never be free again.
    """
    for pool in pools:
        pool.n_free_blocks()  # the parts are made at the first use
    return [held for pool in pools for held in gc.get_referents(pool) if _holds_parts(held)]


def _holds_parts(held: object) -> bool:
    """Whether it is where a pool has its parts: a dict (CuPy 13), a tuple (14); anything else may hold the pool."""
    parts = list(held.values()) if isinstance(held, dict) else held
    return isinstance(parts, (list, tuple)) and any(isinstance(part, _Part) for part in parts)


def capturing(stream: int) -> bool:
    """Whether a graph is being captured on `stream`."""
    try:
        return bool(cupy.cuda.runtime.streamIsCapturing(stream))
    except Exception:
        return False  # a runtime without graphs


def refuse_in_capture(stream: int, nbytes: int) -> None:
    """Raise where a graph is being captured: the driver may not be called then."""
    if capturing(stream):
        raise NotSupported(
            f"{format_size(nbytes)} were asked for while a graph is captured on stream {stream:#x}, and the pool has "
            "no room for that stream without calling the driver: run the same code once before the capture"
        )


def release_plans() -> None:
    """Let CuPy's FFT plans of this thread go, with their work areas."""
    with suppress(Exception):
        cupy.fft.config.get_plan_cache().clear()


def plan_bytes() -> int:
    """Bytes that the FFT plans of this thread hold for work, on the current device."""
    try:
        return int(cupy.fft.config.get_plan_cache().get_curr_memsize())
    except Exception:
        return 0  # a CuPy without FFT


def plan_areas() -> set[int]:
    """Addresses that the FFT plans of this thread hold for work."""
    areas: set[int] = set()
    with suppress(Exception):
        for _, node in cupy.fft.config.get_plan_cache():
            area = getattr(node.plan, "work_area", None)
            areas.update(int(one.ptr) for one in (area if isinstance(area, list) else [area]) if one is not None)
    return areas


def _pointer(found: Range, reserve: Reserve, device: int) -> Any:
    memory = cupy.cuda.UnownedMemory(found.address, found.nbytes, _Root(found, reserve.returned), device)
    return cupy.cuda.MemoryPointer(memory, 0)


class Allocating:
    """Let CuPy allocate by `allocator` in the calling thread, for a `with` block; None: by the process's.

    CuPy's `using_allocator` is a generator: one that is dropped while it is open runs its end in whichever thread drops
    it, and changes the allocator there.
    """

    def __init__(self, allocator: Any) -> None:
        self._allocator = allocator

    def __enter__(self) -> None:
        self._before = cupy.cuda.memory._get_thread_local_allocator()
        cupy.cuda.memory._set_thread_local_allocator(self._allocator)

    def __exit__(self, *error: object) -> None:
        cupy.cuda.memory._set_thread_local_allocator(self._before)

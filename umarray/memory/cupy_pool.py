"""Pools for CuPy: a `cupy.cuda.MemoryPool` whose base allocator carves from umarray's arenas.

`malloc` is CuPy's own compiled method wherever nothing is tracked: that is the hot path (see `cupy_roots`).
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, ClassVar

import cupy

from umarray.drivers import get_driver
from umarray.drivers.base import Array, Kind, Mode
from umarray.errors import ClosedError, NotSupported
from umarray.memory import active, cupy_fork, deferred, lingering
from umarray.memory.cupy_limits import Limited, ignore_environment
from umarray.memory.cupy_roots import (
    Allocating,
    Lane,
    capturing,
    cupy_parts,
    plan_areas,
    plan_bytes,
    refuse_in_capture,
    release_plans,
)
from umarray.memory.owners import Owner
from umarray.memory.pool import Pool
from umarray.memory.reserve import Reserve
from umarray.memory.shares import Shares
from umarray.sizes import format_size

_CuPyPool: Any = cupy.cuda.MemoryPool
_Pointer: Any = cupy.cuda.MemoryPointer
_Unowned: Any = cupy.cuda.UnownedMemory
_parts: dict[int, list[Any]] = {}  # by pool, until nothing of it is in use: see `cupy_parts`


class _Base(Limited, Pool, _CuPyPool):  # type: ignore[misc]
    """What both pools for CuPy are.

    Notes
    -----
    CuPy's own methods mean what they mean on any CuPy pool, for the current device: `used_bytes` counts live blocks,
    `free_bytes` what CuPy holds for streams and has not handed out (so the root that was carved ahead counts as free,
    never as used), `total_bytes` both together. `free_all_blocks` also gives arenas in which nothing is left back to
    the driver. What the driver granted in all is `statistics().arena_bytes`.

    Do not call the pool from a finaliser.
    """

    _kind: ClassVar[Kind]

    def __new__(cls, *args: Any, **settings: Any) -> Any:
        if settings.get("track") is True:
            cls = _TRACKED.get(cls, cls)
        return super().__new__(cls)

    def __init__(
        self,
        arena_bytes: Any = None,
        *,
        limit: Any = None,
        headroom: Any = None,
        oversubscribe: float = 1.0,
        coarse_grain: bool | None = None,
        track: bool = False,
    ) -> None:
        driver = get_driver()
        self._check_mode(driver)
        main, lasting = Lane(self, "main"), Lane(self, "persistent")
        _CuPyPool.__init__(self, main.allocate)
        main.pool = weakref.ref(self)
        self._persistent_pool = _Inner(lasting.allocate)
        lasting.pool = weakref.ref(self._persistent_pool)
        self._plain_pool = _Inner()
        ignore_environment(self, self._persistent_pool, self._plain_pool)
        self._limits = {}
        self._shares: dict[int, Shares] = {}
        self._set_up(self._kind, arena_bytes, limit, headroom, oversubscribe, coarse_grain, track)
        _parts[id(self)] = cupy_parts(self, self._persistent_pool, self._plain_pool)

    def _check_mode(self, driver: Any) -> None:
        if driver.xp is not cupy:
            raise NotSupported(f"this process runs in {driver.mode.value} mode without CuPy: use umarray.pool")

    # CuPy's methods, over all lanes

    def free_all_blocks(self, stream: Any = None) -> None:
        """Give back every free block of the current device (or of `stream`), and arenas in which nothing is left."""
        deferred.drain()
        self._drop_roots(stream)
        self._plain_pool.free_all_blocks(stream)
        reserve = self._reserves.get(self.driver.current_device())
        if reserve is not None:
            reserve.release()
        lingering.sweep()

    def used_bytes(self) -> int:
        """Bytes of live blocks on the current device."""
        return int(_CuPyPool.used_bytes(self) + self._persistent_pool.used_bytes())

    def free_bytes(self) -> int:
        """Bytes carved for streams of the current device and not handed out."""
        return int(_CuPyPool.free_bytes(self) + self._persistent_pool.free_bytes())

    def total_bytes(self) -> int:
        """Bytes carved for streams of the current device: used and free."""
        return int(_CuPyPool.total_bytes(self) + self._persistent_pool.total_bytes())

    def n_free_blocks(self) -> int:
        """How many free blocks the current device has."""
        return int(_CuPyPool.n_free_blocks(self) + self._persistent_pool.n_free_blocks())

    # What lanes call, on a miss

    def missed(self, nbytes: int, owner: Owner) -> None:
        """A lane was asked for memory: look whether it may have it."""
        if self._closed:
            raise ClosedError("this pool is closed: make a new one, or restore CuPy's allocator")
        self._misses += 1
        if not capturing(owner.stream):
            deferred.drain()
            lingering.sweep()
        self.keep_to_limit(nbytes, owner.stream)

    def shares_of(self, device: int) -> Shares:
        """What the roots of a device should be."""
        return self._shares.setdefault(device, Shares())

    def reclaim(self, hard: bool) -> None:
        """Make unused memory come back to the arenas; `hard`: whatever it costs."""
        if hard:
            release_plans()
            gc.collect()
            deferred.drain()
            lingering.sweep()
        self._drop_roots()

    # What the base class asks

    def is_current(self) -> bool:
        return active.current() is self or getattr(cupy.cuda.get_allocator(), "__self__", None) is self

    def array_of_bytes(self, nbytes: int) -> Array:
        self.driver.current_device()  # raises in a forked child
        with Allocating(self._malloc_for(active.flags(self))):
            return cupy.empty(nbytes, "u1")

    def install_allocator(self) -> Callable[[], None]:
        malloc, default = self.malloc, cupy._default_memory_pool
        with Allocating(None):
            before = cupy.cuda.get_allocator()
            cupy.cuda.set_allocator(malloc)
        cupy._default_memory_pool = self

        def undo() -> None:
            with Allocating(None):
                if cupy.cuda.get_allocator() == malloc:
                    cupy.cuda.set_allocator(before)
            if cupy._default_memory_pool is self:
                cupy._default_memory_pool = default

        return undo

    def close(self) -> None:
        if not self._closed:
            self.malloc = _closed_malloc
        super().close()

    def _allocating(self, flags: active.Flags) -> AbstractContextManager[Any]:
        return Allocating(self._malloc_for(flags))

    def _malloc_for(self, flags: active.Flags) -> Callable[[int], Any]:
        if flags.plain:
            return self._plain_pool.malloc  # type: ignore[no-any-return]
        if flags.tracked or self.tracking:
            return partial(self._tracked_malloc, persistent=flags.persistent)
        return self._persistent_pool.malloc if flags.persistent else self.malloc

    def _tracked_malloc(self, nbytes: int, *, persistent: bool = False) -> Any:
        pool = self._persistent_pool if persistent else self
        pointer = _CuPyPool.malloc(pool, nbytes)
        if pointer.ptr == 0:
            return pointer
        memory = pointer.mem
        address, nbytes = memory.ptr, memory.size
        block = self.tracker.made(memory, address, nbytes, persistent, self.epochs.depth() > 0)
        return _Pointer(_Unowned(address, nbytes, block, memory.device_id), 0)

    def _prepare(self, reserve: Reserve) -> None:
        driver = self.driver
        reserve.before_driver = lambda nbytes: refuse_in_capture(driver.current_stream(), nbytes)

    def relay(self) -> None:
        if self._misses == self._relaid_at:
            return
        self._relaid_at = self._misses
        for device, reserve in list(self._reserves.items()):
            if self.shares_of(device).learn(reserve.clear_peaks()):
                with cupy.cuda.Device(device):
                    self._drop_roots()
                reserve.consolidate()
                reserve.clear_peaks()

    def _drop_roots(self, stream: Any = None) -> None:
        _CuPyPool.free_all_blocks(self, stream)
        self._persistent_pool.free_all_blocks(stream)

    def _drop_free(self) -> None:
        for device in list(self._reserves):
            with cupy.cuda.Device(device):
                self._drop_roots()
                self._plain_pool.free_all_blocks()

    def _current_bytes(self) -> int:
        total = 0
        for device in list(self._reserves):
            with cupy.cuda.Device(device):
                total += self.used_bytes()
        return total

    def _let_go(self) -> None:
        _parts.pop(id(self), None)

    def _plain_bytes(self) -> int:
        total = 0
        for device in range(self.driver.device_count()) if self._made_plain else ():
            with cupy.cuda.Device(device):
                total += self._plain_pool.used_bytes()
        return total

    def _library_bytes(self) -> int:
        return plan_bytes()

    def library_blocks(self) -> Iterable[int]:
        return plan_areas()


class _Inner(_CuPyPool):  # type: ignore[misc]
    """A pool inside ours."""


class ManagedMemoryPool(_Base):
    """A `cupy.cuda.MemoryPool` over one big allocation of managed memory.

    Parameters
    ----------
    arena_bytes, limit, headroom, oversubscribe, coarse_grain, track
        As for `umarray.memory.Pool`.

    Raises
    ------
    NotSupported
        A visible device cannot fault and migrate; the text says why.
    """

    _kind = Kind.MANAGED

    def _check_mode(self, driver: Any) -> None:
        super()._check_mode(driver)
        if driver.mode is not Mode.MANAGED:
            raise NotSupported(
                f"managed memory needs managed mode, and this process runs in {driver.mode.value} mode "
                f"({'; '.join(driver.reasons)}): umarray.pool() makes the pool that fits"
            )


class DeviceMemoryPool(_Base):
    """The same over plain device memory, for devices without page faults."""

    _kind = Kind.DEVICE


cupy_fork.watch(_Base, _Inner)


class _Tracked:
    def malloc(self, nbytes: int) -> Any:
        return self._tracked_malloc(nbytes, persistent=active.flags(self).persistent)  # type: ignore


class _TrackedManaged(_Tracked, ManagedMemoryPool):
    pass


class _TrackedDevice(_Tracked, DeviceMemoryPool):
    pass


_TRACKED = {ManagedMemoryPool: _TrackedManaged, DeviceMemoryPool: _TrackedDevice}


def _closed_malloc(nbytes: int) -> Any:
    raise ClosedError(f"this pool is closed ({format_size(nbytes)} were asked for): make a new one")

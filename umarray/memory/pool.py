"""What every pool is: arenas from a driver, a budget, epochs, persistent blocks, statistics, and an end.

How memory gets to arrays differs (`host_pool`, `cupy_pool`); everything here holds for both.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeVar

from umarray.drivers import get_driver
from umarray.drivers.base import Array, Driver, Kind, Mode
from umarray.errors import ClosedError
from umarray.memory import active, deferred, lingering
from umarray.memory.budget import check_request, make_budget
from umarray.memory.epochs import Epoch, Epochs
from umarray.memory.reserve import Reserve
from umarray.memory.statistics import PoolStatistics, Showing
from umarray.memory.tracking import Tracker
from umarray.places import HOST, Device

Self = TypeVar("Self", bound="Pool")


class Pool(Showing):
    """What `umarray.pool` and `umarray.install` return, whatever the mode.

    Parameters
    ----------
    arena_bytes : int or str, optional
        The first arena: bytes, "512MiB", or "25%" of the memory; else `UMARRAY_ARENA`, else 64 MiB. Further arenas
        double, up to the limit.
    limit : int or str, optional
        What all arenas of a device may reach; else `CUPY_GPU_MEMORY_LIMIT`, else what is free less the headroom.
    headroom : int or str, optional
        What stays free for others: by default the larger of 1 GiB and 5 % of the memory (never over a quarter).
    oversubscribe : float
        In managed mode the limit may reach this many times what is free.
    coarse_grain : bool, optional
        Ask for HIP's coarse-grain coherence on the arenas: coherent where kernels end, and quicker. None asks where the
        device has it and is the only one; see `umarray.memory.preference`.
    track : bool
        Count peaks, totals and escapes. It costs time in every allocation.

    Notes
    -----
    Safe from any thread. A free never waits for umarray: it appends, and the next allocation takes it in. So a pool
    that is dropped gives its arenas back at the next call into umarray (an allocation that misses, the end of an
    epoch, a new pool, `statistics`), once nothing in them is in use; `close` does so at once.
    """

    kind: Kind

    # The life of a pool

    def _set_up(
        self,
        kind: Kind,
        arena_bytes: Any,
        limit: Any,
        headroom: Any,
        oversubscribe: Any,
        coarse_grain: Any,
        track: Any,
    ) -> None:
        for name, value in (("coarse_grain", coarse_grain), ("track", track)):
            if not (isinstance(value, bool) or (name == "coarse_grain" and value is None)):
                raise TypeError(f"{name} must be True or False, not {value!r}")
        driver = get_driver()
        check_request(driver, arena_bytes, limit, headroom, oversubscribe)
        lingering.sweep()
        self.driver: Driver = driver
        self.kind = kind
        self._request = (arena_bytes, limit, headroom, oversubscribe)
        self._coarse_grain = coarse_grain
        self.tracking = track
        self.tracker = Tracker()
        self._reserves: dict[int, Reserve] = {}
        self._lock = threading.RLock()
        self._misses = 0
        self._relaid_at = 0  # misses when the arenas were last made whole
        self.epochs = Epochs()
        self._closed = False
        self._scoped = False
        self._made_plain = False
        self._entries: list[active.Entry] = []
        if arena_bytes is not None or limit is not None:
            self.reserve_of(driver.current_device())  # a size that cannot be is refused here

    def reserve_of(self, device: int) -> Reserve:
        """The arenas on a device; the budget is made at the first call, from what is free then."""
        reserve = self._reserves.get(device)
        if reserve is None:
            place = HOST if self.driver.mode is Mode.HOST else Device(device)
            budget = make_budget(self.driver, place, *self._request)
            made = Reserve(self.driver, self.kind, device, budget, self._coarse_grain)
            self._prepare(made)
            with self._lock:
                reserve = self._reserves.setdefault(device, made)
        return reserve

    def has_reserve(self, device: int) -> bool:
        """Whether a device was used already."""
        return device in self._reserves

    @property
    def closed(self) -> bool:
        """`close` was called: nothing new is handed out."""
        return self._closed

    def check_open(self) -> None:
        """Raise `ClosedError` on a closed pool."""
        if self._closed:
            raise ClosedError("this pool is closed: make a new one")

    def close(self) -> None:
        """Hand out nothing more, and give the arenas back as soon as nothing in them is in use.

        Arrays that are alive stay valid; the pool is kept until the last of them is gone. A bound `malloc` that CuPy
        was given before may still hand out what lies free between them, and nothing beyond that.
        """
        if self._closed:
            return
        self._closed = True
        if not self.finish():
            lingering.keep(self)

    def finish(self) -> bool:
        """Give everything back if nothing is in use; whether that was so."""
        deferred.drain()
        self._drop_free()
        if self._in_use():
            return False
        for reserve in list(self._reserves.values()):
            reserve.release()
        if any(reserve.slabs for reserve in self._reserves.values()):
            return False
        self._let_go()
        return True

    def __del__(self) -> None:
        # Only appending is safe here. A pool that never got memory has nothing to keep.
        if getattr(self, "_closed", True):
            return
        if self._made_plain or any(reserve.slabs for reserve in self._reserves.values()):
            self._closed = True
            lingering.keep(self)
        else:
            self._let_go()

    # Scopes

    def __enter__(self: Self) -> Self:
        self.check_open()
        self._entries.append(self.activate())
        return self

    def __exit__(self, *error: object) -> None:
        mine = [entry for entry in self._entries if entry.here()]
        if not mine:
            raise RuntimeError("a pool must be left in the thread that entered it")
        self._entries.remove(mine[-1])
        mine[-1].leave(with_inner=True)
        if self._scoped and not self._entries:
            self.close()

    def activate(self, **how: bool) -> active.Entry:
        """Make this pool the one of the calling thread, until the entry that comes back is left."""
        flags = active.flags(self)._replace(**how)
        return active.enter(self, self._allocating(flags), flags)

    def epoch(self, label: str = "epoch", *, on_escape: str = "retain") -> Epoch:
        """A span of the program at whose end the arenas are made whole again.

        Parameters
        ----------
        label : str
            For warnings, errors and records.
        on_escape : {"retain", "warn", "raise"}
            What happens when an array made inside is alive at the end. It always keeps its memory, and the next epoch
            carves around it. "warn" says so once for each line that made some, "raise" is an `EscapeError`, but only
            where the body succeeded. Both see what the calling thread allocates, by the array library where the pool
            is its current one, else by `umarray.empty` and its like; all threads and ways where the pool tracks.

        Examples
        --------
        >>> import umarray as um
        >>> with um.pool("1MiB") as pool:
        ...     with pool.epoch("first") as epoch:
        ...         x = um.zeros(1000)
        ...         del x
        """
        return Epoch(self, label, on_escape)

    def persistent(self) -> AbstractContextManager[None]:
        """Arrays made in this block, by this thread, live as long as they like: they never count as escapes."""
        return self._activated(persistent=True)

    def plain(self) -> AbstractContextManager[None]:
        """Arrays made in this block, by this thread, are plain device memory, for NCCL, MPI and IPC buffers.

        On the host, memory is memory.
        """
        return self._activated(plain=True)

    @contextmanager
    def _activated(self, **how: bool) -> Iterator[None]:
        self.check_open()
        self._made_plain |= how.get("plain", False)
        entry = self.activate(**how)
        try:
            yield
        finally:
            entry.leave()

    def track_here(self) -> active.Entry | None:
        """Track what the calling thread allocates from here until the entry is left; None where that is done anyway."""
        if self.tracking:
            return None
        if self.is_current():
            return self.activate(tracked=True)
        return active.enter(self, None, active.flags(self)._replace(tracked=True), makes_current=False)

    # Asking

    def statistics(self) -> PoolStatistics:
        """The pool at this moment, frozen."""
        deferred.drain()
        lingering.sweep()
        reserves = list(self._reserves.values())
        tracker = self.tracker if self.tracking else None
        granted = [slab.allocation for reserve in reserves for slab in reserve.slabs]
        spans = [(arena.address, arena.address + arena.nbytes) for arena in granted]
        return PoolStatistics(
            kind=self.kind.value,
            limit_bytes=sum(reserve.budget.limit for reserve in reserves),
            arena_bytes=sum(arena.nbytes for arena in granted),
            arenas=len(granted),
            carved_bytes=sum(reserve.used_bytes for reserve in reserves),
            current_bytes=self._current_bytes(),
            misses=self._misses,
            driver_allocations=sum(reserve.driver_allocations for reserve in reserves),
            deferred_uses=deferred.held(),
            plain_bytes=self._plain_bytes(),
            library_bytes=self._library_bytes(),
            peak_bytes=None if tracker is None else tracker.peak_bytes,
            total_bytes=None if tracker is None else tracker.total_bytes,
            allocations=None if tracker is None else tracker.next_serial,
            escapes=None if tracker is None else tuple(self.epochs.escapes),
            fragmentation=None if tracker is None else tracker.holes(spans),
        )

    # What a kind of pool fills in

    def is_current(self) -> bool:
        """Arrays that the calling thread makes now come from this pool."""
        return active.current() is self

    def install_allocator(self) -> Callable[[], None]:
        """Make the array library allocate here in the whole process; returns what undoes it."""
        return lambda: None

    def array_of_bytes(self, nbytes: int) -> Array:
        """A 1-D uint8 array of fresh memory on the current device, not initialised."""
        raise NotImplementedError

    def _allocating(self, flags: active.Flags) -> AbstractContextManager[Any] | None:
        """What makes the array library allocate here, in the calling thread; None where there is no such thing."""
        return None

    def _prepare(self, reserve: Reserve) -> None:
        return None

    def relay(self) -> None:
        """Make the arenas whole, where something missed since that was last done."""
        for reserve in list(self._reserves.values()):
            reserve.consolidate()

    def _drop_free(self) -> None:
        """Give carved memory that is free back to the arenas."""

    def _let_go(self) -> None:
        """Nothing is left to keep. May be called by a finaliser."""

    def _in_use(self) -> bool:
        return self._current_bytes() > 0 or self._plain_bytes() > 0

    def _current_bytes(self) -> int:
        return sum(reserve.used_bytes for reserve in list(self._reserves.values()))

    def _plain_bytes(self) -> int:
        return 0

    def _library_bytes(self) -> int:
        return 0

    def library_blocks(self) -> Iterable[int]:
        return ()

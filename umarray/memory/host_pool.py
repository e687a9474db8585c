"""A pool whose arrays are laid over its arenas directly: NumPy's, on the host or over a driver of the tests."""

from __future__ import annotations

import gc
from typing import Any

from umarray.drivers import get_driver
from umarray.drivers.base import Array, Kind, Mode
from umarray.memory import active, deferred
from umarray.memory.arena import UNIT
from umarray.memory.owners import Owner, owner_of
from umarray.memory.pool import Pool
from umarray.memory.reserve import Range, Returned

_KINDS = {Mode.MANAGED: Kind.MANAGED, Mode.EXPLICIT: Kind.DEVICE, Mode.HOST: Kind.HOST}


class HostBlock:
    """Memory that lives as long as this object. Its finaliser only appends."""

    __slots__ = ("__weakref__", "_back", "_returned", "address", "nbytes", "owner")

    def __init__(self, found: Range, returned: Returned) -> None:
        self.address = found.address
        self.nbytes = found.nbytes
        self.owner = found.owner
        self._back = (found.slab, found.offset, (found.owner,))  # made here: a new tuple may start the collector
        self._returned = returned

    def __del__(self) -> None:
        self._returned.append(self._back)


class HostPool(Pool):
    """The pool of a process without a device: the same face over NumPy.

    NumPy's own functions do not ask a pool for memory: `umarray.empty`, `zeros` and `asarray` do.

    Examples
    --------
    >>> import umarray as um
    >>> with um.pool("1MiB", track=True) as pool:
    ...     x = um.zeros(1000, "f4")
    ...     pool.statistics().current_bytes
    4096
    """

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
        kind = _KINDS[get_driver().mode]
        self._set_up(kind, arena_bytes, limit, headroom, oversubscribe, coarse_grain, track)

    def malloc(self, nbytes: int, *, align: int = UNIT) -> Any:
        """A block of `nbytes` bytes on the current device and stream; it is free when the object that comes back dies.

        Raises
        ------
        OutOfMemory
            The budget, or the driver, has no room; nothing has changed.
        ClosedError
            The pool is closed.
        """
        self.check_open()
        if nbytes < 0:
            raise ValueError(f"a block cannot have {nbytes} bytes")
        device = self.driver.current_device()
        reserve = self.reserve_of(device)
        found = reserve.find(nbytes, owner := self._owner(device), align)
        if found is None:
            self._misses += 1
            found = reserve.obtain(nbytes, owner, align=align, reclaim=lambda hard: self._reclaim(hard))
        block: Any = HostBlock(found, reserve.returned)
        flags = active.flags(self)
        if self.tracking or flags.tracked:
            block = self.tracker.made(block, found.address, found.nbytes, flags.persistent, self.epochs.depth() > 0)
        return block

    def array_of_bytes(self, nbytes: int) -> Array:
        block = self.malloc(nbytes)
        address = getattr(block, "inner", block).address
        return self.driver.as_array(address, nbytes, block, self.driver.current_device())

    def _owner(self, device: int) -> Owner:
        return owner_of(device, self.driver.current_stream(device))

    def _reclaim(self, hard: bool) -> None:
        deferred.drain()
        if hard:
            gc.collect()

"""The arenas of one device: carved under a lock, grown by the driver with the lock released.

What comes back is appended to `returned` by finalisers, which may run anywhere (in the garbage collector, on any
thread, under a lock of CuPy's), and is taken in at the next call. So a free never waits.

A finaliser that allocates while the lock is held (see `guard`) gets an arena of its own for that one request.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from umarray.drivers.base import Allocation, Driver, Kind
from umarray.errors import OutOfMemory
from umarray.memory.arena import UNIT, Arena, Carved, Fence, round_up
from umarray.memory.budget import Budget
from umarray.memory.guard import Guard
from umarray.memory.owners import Owner, order_after
from umarray.memory.preference import prefer
from umarray.sizes import format_size

GRAIN = 2 << 20  # arenas are multiples of this many bytes where the limit allows


_guard = Guard()
os.register_at_fork(after_in_child=_guard.reset)


class Slab(NamedTuple):
    """One driver allocation and the ranges in it."""

    allocation: Allocation
    arena: Arena


class Range(NamedTuple):
    """A part of an arena that was handed to an owner."""

    slab: Slab
    offset: int
    nbytes: int
    owner: Owner

    @property
    def address(self) -> int:
        return self.slab.allocation.address + self.offset


Returned = deque[tuple[Slab, int, tuple[Owner, ...]]]


class Reserve:
    """Arenas of one kind of memory on one device, within a budget.

    Attributes
    ----------
    returned : deque
        Where a finaliser appends (slab, offset, owners) of a range that nobody uses any more.
    before_driver : callable
        Called before anything that needs the driver; may raise (a graph capture).
    driver_allocations : int
        Arenas that the driver was asked for, over all time.
    carved, peaks : dict
        Bytes that each owner holds, and the most it held since `peaks` was cleared.
    """

    def __init__(
        self, driver: Driver, kind: Kind, device: int, budget: Budget, coarse_grain: bool | None = None
    ) -> None:
        self.driver, self.kind, self.device, self.budget = driver, kind, device, budget
        self.returned: Returned = deque()
        self.before_driver: Callable[[int], None] = lambda nbytes: None
        self.driver_allocations = 0
        self.carved: dict[Owner, int] = {}
        self.peaks: dict[Owner, int] = {}
        self._coarse_grain = coarse_grain
        self._slabs: list[Slab] = []
        self._adopted: deque[Slab] = deque()
        self._held = 0  # bytes of the slabs, and of those that the driver is being asked for
        self._next = budget.first

    # Taking

    def obtain(
        self, nbytes: int, owner: Owner, *, align: int = UNIT, reclaim: Callable[[bool], None] = lambda hard: None
    ) -> Range:
        """A range for `owner`, ordered after whoever used it before.

        Parameters
        ----------
        nbytes : int
            Rounded up to 512.
        reclaim : callable
            Makes unused memory come back: called with False before the driver is asked for more, and with True
            (whatever it costs) before the request fails.

        Raises
        ------
        OutOfMemory
            Neither the arenas nor the budget nor the driver has room; nothing has changed.
        """
        nbytes = round_up(max(nbytes, 1))
        found = self.find(nbytes, owner, align)
        if found is None and self._slabs:
            reclaim(False)
            found = self.find(nbytes, owner, align)
        if found is None:
            try:
                found = self._grow(nbytes, owner, align)
            except OutOfMemory:
                reclaim(True)
                found = self.find(nbytes, owner, align)
                if found is None:
                    self._make_room(nbytes)
                    found = self._grow(nbytes, owner, align)
        return found

    def find(self, nbytes: int, owner: Owner, align: int = UNIT, *, least: int | None = None) -> Range | None:
        """A range out of the arenas there are, or None; with `least`, one that may be smaller than asked."""
        with _guard as again:
            if again:
                return None
            self._take_in()
            slab, carved = self._carve(nbytes, align, least)
            if slab is None or carved is None:
                return None
            found = self._hand(slab, carved, owner)
        self._order(found, carved.fence)
        return found

    def _carve(self, nbytes: int, align: int, least: int | None) -> tuple[Slab | None, Carved | None]:
        for slab in self._slabs:
            carved = slab.arena.take(nbytes, align)
            if carved is not None:
                return slab, carved
        if least is None or not self._slabs:
            return None, None
        slab = max(self._slabs, key=lambda slab: slab.arena.largest_free)
        return slab, slab.arena.take_largest(nbytes, least)

    def _hand(self, slab: Slab, carved: Carved, owner: Owner) -> Range:
        self.carved[owner] = held = self.carved.get(owner, 0) + carved.nbytes
        self.peaks[owner] = max(self.peaks.get(owner, 0), held)
        return Range(slab, carved.offset, carved.nbytes, owner)

    def _order(self, found: Range, fence: Fence) -> None:
        """Order the new owner after everyone in `fence`; where that fails, the range goes back as it came."""
        others = [before for before in fence if isinstance(before, Owner) and not before.same_stream(found.owner)]
        if not others:
            return
        try:
            self.before_driver(found.nbytes)
            for before in others:
                order_after(self.driver, before, found.owner)
        except BaseException:
            self.returned.append((found.slab, found.offset, (found.owner, *others)))
            raise

    def _grow(self, nbytes: int, owner: Owner, align: int) -> Range:
        self.before_driver(nbytes)
        least = nbytes if align <= self.driver.page_size else nbytes + align
        with _guard:
            room = self.budget.limit - self._held
            if least > room:
                raise OutOfMemory(nbytes, self.used_bytes, self.budget.limit, self._why(nbytes))
            size = min(self._next if self._next >= least else round_up(least, GRAIN), room)
            self._held += size
        try:
            allocation = self._allocate(size, least)
        except BaseException:
            with _guard:
                self._held -= size
            raise
        slab = Slab(allocation, Arena(allocation.nbytes))
        carved = slab.arena.take(nbytes, align)
        assert carved is not None
        self._adopted.append(slab)
        with _guard as again:
            self._held += allocation.nbytes - size
            self._next = max(self._next, 2 * allocation.nbytes)
            self.driver_allocations += 1
            if not again:
                self._take_in()
            return self._hand(slab, carved, owner)

    def _allocate(self, size: int, least: int) -> Allocation:
        """As much as the driver grants, from `size` down to `least`."""
        while True:
            try:
                allocation = self.driver.allocate(size, self.kind, self.device)
            except OutOfMemory:
                if size <= least:
                    raise
                size = max(least, round_up(size // 2, GRAIN) if size // 2 > GRAIN else least)
                continue
            prefer(self.driver, allocation, self._coarse_grain)
            return allocation

    def _why(self, nbytes: int) -> str:
        free = sum(slab.arena.free_bytes for slab in self._slabs)
        largest = max((slab.arena.largest_free for slab in self._slabs), default=0)
        text = f"{format_size(self._held)} in {len(self._slabs)} arenas"
        if free >= nbytes:
            return (
                f"{text}, of which {format_size(free)} are free but in pieces of at most {format_size(largest)}: "
                "delete arrays between them, or end an epoch with fewer escapes"
            )
        return f"{text}, {format_size(free)} of it free: delete arrays, or raise the pool's limit"

    # Giving back

    def _take_in(self) -> None:
        while self._adopted:
            self._slabs.append(self._adopted.popleft())
        while self.returned:
            slab, offset, owners = self.returned.popleft()
            nbytes = slab.arena.give(offset, *owners)
            self.carved[owners[0]] -= nbytes

    def release(self) -> int:
        """Give arenas that nobody uses back to the driver; returns their bytes.

        Notes
        -----
        Waits for the device where a stream may still be working in them.
        """
        with _guard as again:
            if again:
                return 0
            self._take_in()
            idle = [slab for slab in self._slabs if slab.arena.whole]
            gone = {id(slab) for slab in idle}
            self._slabs = [slab for slab in self._slabs if id(slab) not in gone]
            nbytes = sum(slab.allocation.nbytes for slab in idle)
            self._held -= nbytes
        for device in {owner.device for slab in idle for owner in slab.arena.fence() if isinstance(owner, Owner)}:
            with suppress(Exception):  # a broken device must not keep the rest from going back
                self.driver.synchronize(device=device)
        for slab in idle:
            self.driver.free(slab.allocation)
        return nbytes

    def _make_room(self, nbytes: int) -> None:
        """Give back arenas that nobody uses and that are too small one by one, where one in their place would do."""
        with _guard:
            idle = sum(slab.allocation.nbytes for slab in self._slabs if slab.arena.whole)
            fits = idle > 0 and nbytes <= self.budget.limit - self._held + idle
        if fits:
            self.release()

    def consolidate(self) -> None:
        """Make several idle arenas one: they go back now, and the next growth asks for all of their bytes at once."""
        with _guard as again:
            if again:
                return
            self._take_in()
            idle = [slab for slab in self._slabs if slab.arena.whole]
        if len(idle) > 1:
            self._next = self.release()

    # Asking

    @property
    def used_bytes(self) -> int:
        """Bytes handed to owners."""
        with _guard as again:
            if not again:
                self._take_in()
            return sum(slab.arena.used_bytes for slab in self._slabs)

    @property
    def arena_bytes(self) -> int:
        """Bytes of all arenas."""
        return sum(slab.allocation.nbytes for slab in (*self._slabs, *self._adopted))

    @property
    def slabs(self) -> tuple[Slab, ...]:
        return (*self._slabs, *self._adopted)

    def free_bytes(self) -> tuple[int, int]:
        """Free bytes of the arenas, and the largest free range."""
        with _guard as again:
            if not again:
                self._take_in()
            free = [(slab.arena.free_bytes, slab.arena.largest_free) for slab in self._slabs]
        return sum(bytes_ for bytes_, _ in free), max((largest for _, largest in free), default=0)

    def clear_peaks(self) -> dict[Owner, int]:
        """The most that each owner held since the last call; counts anew from what it holds now."""
        with _guard as again:
            if not again:
                self._take_in()
            peaks = self.peaks
            self.carved = {owner: nbytes for owner, nbytes in self.carved.items() if nbytes}
            self.peaks = dict(self.carved)
        return peaks

"""Which allocation holds an address: a table of our own, since runtimes answer wrongly (HIP 6 and later).

An allocation may be freed by the garbage collector, which can start inside any method here, in the same thread. So the
lock is reentrant, each change is one step of a C function, and a look-up that a change came between is made again.
"""

from __future__ import annotations

import itertools
import threading
from bisect import bisect_right, insort

from umarray.drivers.base import Allocation, Kind
from umarray.places import Place


class AllocationTable:
    """Live allocations by address. Safe from any thread, and from finalisers."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._starts: list[int] = []
        self._by_start: dict[int, Allocation] = {}
        self._serials = itertools.count(1)
        self._changes = 0

    def add(self, address: int, nbytes: int, kind: Kind, place: Place) -> Allocation:
        """Enter a new allocation and return it with its serial."""
        allocation = Allocation(address, nbytes, kind, place, next(self._serials))
        with self._lock:
            self._by_start[address] = allocation
            insort(self._starts, address)
            self._changes += 1
        return allocation

    def remove(self, allocation: Allocation) -> None:
        """Forget an allocation.

        Raises
        ------
        ValueError
            It is not in the table: freed before, or never ours.
        """
        with self._lock:
            if self._by_start.get(allocation.address) != allocation:
                raise ValueError(f"{allocation} is not allocated: freed before, or never from this driver")
            self._starts.remove(allocation.address)
            del self._by_start[allocation.address]
            self._changes += 1

    def find(self, address: int) -> Allocation | None:
        """The allocation whose range holds `address`."""
        with self._lock:
            found, changes = None, -1
            while changes != self._changes:
                changes = self._changes
                at = bisect_right(self._starts, address)
                before = self._starts[at - 1 : at]
                found = self._by_start.get(before[0]) if before else None
        return found if found is not None and address < found.address + found.nbytes else None

    def __len__(self) -> int:
        return len(self._starts)
